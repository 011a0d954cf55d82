package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// evidence is what the checks have read of a run so far; each finds there what those before it have read.
type evidence struct {
	findings
	run       string
	listed    []store.Object
	manifests manifests              // also of warm starts
	stages    map[string][]committed // the run's stage manifests by step, in the order of their keys
	heads     map[int]schema.Head
	shared    map[int]schema.Head   // of the steps that another run has made
	recipe    *identity             // nil where it cannot be read
	debating  *analysis.Debating    // what the recipe says about debates; nil likewise
	shards    map[string]shardFacts // by key, without those whose faulty rows are faults already
}

// shardFacts are what the checks between shards need of a shard whose rows are as its manifest says.
type shardFacts struct {
	update    *policies // before and after an update
	excluded  int       // rows of the selection that say so
	kept      int       // … and that were kept
	masked    int       // … and of these, masked
	evaluated []schema.EvaluationRow
	measured  map[string]bool // the evaluations that have measured times, by their stages
}

func newEvidence(objects store.Store, run string, listed []store.Object) *evidence {
	return &evidence{
		findings: findings{objects: objects, out: Report{Run: run}, named: map[string]bool{}},
		run:      run, listed: listed, manifests: manifests{}, heads: map[int]schema.Head{},
		shared: map[int]schema.Head{}, shards: map[string]shardFacts{},
	}
}

// fetches is how many small objects are fetched at once, since each takes a round trip to the store; shardsAtOnce is
// how many shards and files are decoded at once, each being held in memory.
const (
	fetches      = 16
	shardsAtOnce = 4
)

// stepOf returns a step's number; ok is false for what precedes the first step.
func stepOf(step string) (int, bool) { return schema.Place{Step: step}.StepNumber() }

// policies holds the digests of the policies before and after an update, from its rows.
type policies struct{ before, after string }

// committed is a manifest that could be read, with the digest of its bytes. It keeps only the notes and statistics that
// are checked: activities' results are most of a manifest, and a long run has tens of thousands.
type committed struct {
	schema.Manifest
	digest string
	// foreign manifests belong to another run, whose policy this one evaluates or goes on with. Their existence and
	// digest count here; the rest is checked with their own run.
	foreign bool
}

// manifests are committed manifests by key.
type manifests map[string]committed

// readManifests reads every manifest and head that lies under the run's prefix.
func readManifests(ctx context.Context, v *evidence) error {
	return rescue.Each(ctx, fetches, len(v.listed), func(ctx context.Context, i int) error {
		key := v.listed[i].Key
		switch {
		case strings.HasPrefix(key, schema.ManifestsPrefix(v.run)):
			return readManifest(ctx, v, key, "a listing")
		case strings.HasPrefix(key, schema.HeadsPrefix(v.run)):
			return readHead(ctx, v, key)
		case strings.HasPrefix(key, schema.ForksPrefix(v.run)):
			v.name(key)
		}
		return nil
	})
}

func readManifest(ctx context.Context, v *evidence, key, namedBy string) error {
	v.name(key)
	if _, err := schema.ParseManifestKey(key); err != nil {
		v.fault(FaultDamaged, key, "lies among the manifests, but its key is not a manifest's")
		return nil
	}
	data, err := v.get(ctx, key, namedBy)
	if err != nil || data == nil {
		return err
	}
	m, err := schema.DecodeManifest(data)
	if err != nil {
		v.fault(FaultDamaged, key, "is not a manifest: %v", err)
		return nil
	}
	if m.ManifestKey() != key {
		v.fault(FaultDamaged, key, "is the manifest of %s", m.Place)
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !slices.Contains(evaluations, m.Stage) && m.Stage != schema.StageResample && m.Stage != schema.StagePrepare {
		m.Note, m.Stats = nil, nil
	}
	v.manifests[key] = committed{m, schema.Digest(data), m.Warm == "" && m.Run != v.run}
	v.out.Manifests++
	return nil
}

func readHead(ctx context.Context, v *evidence, key string) error {
	v.name(key)
	data, err := v.get(ctx, key, "a listing")
	if err != nil || data == nil {
		return err
	}
	h, err := schema.DecodeHead(data)
	if err != nil {
		v.fault(FaultDamaged, key, "is not a head: %v", err)
		return nil
	}
	if h.Key() != key {
		v.fault(FaultDamaged, key, "is the head of run %s step %s", h.Run, h.Step)
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.out.Heads++
	if n, ok := stepOf(h.Step); ok && h.From != "" {
		v.shared[n] = h
	} else if ok {
		v.heads[n] = h
	}
	return nil
}

// readForeign reads the manifests outside the run that its manifests were made from (warm starts, and the policy that
// an evaluation measures), indexes all manifests and reads the run's recipe.
func readForeign(ctx context.Context, v *evidence) error {
	wanted := map[string]string{} // key → the manifest that names it
	for _, key := range v.keys() {
		for _, ref := range v.manifests[key].Inputs {
			if !strings.HasPrefix(ref.Key, schema.RunPrefix(v.run)) && wanted[ref.Key] == "" {
				wanted[ref.Key] = key
			}
		}
	}
	keys := slices.Sorted(maps.Keys(wanted))
	if err := rescue.Each(ctx, fetches, len(keys), func(ctx context.Context, i int) error {
		return readManifest(ctx, v, keys[i], wanted[keys[i]])
	}); err != nil {
		return err
	}
	indexStages(v)
	return readIdentity(ctx, v)
}

// identity is what the resolved recipe says about the run.
type identity struct {
	Name  string `json:"name"`
	Seed  uint64 `json:"seed"`
	Steps int    `json:"steps"`
}

// readIdentity reads the recipe that the run's prepare stage committed. Other checks find what is wrong with it.
func readIdentity(ctx context.Context, v *evidence) error {
	prepare, ok := v.manifests[schema.AtInit(v.run, schema.StagePrepare).ManifestKey()]
	if !ok {
		return nil
	}
	for _, s := range prepare.ShardsOf(schema.Documents) {
		data, err := v.objects.Get(ctx, s.Key)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the recipe of run %s: %w", v.run, err)
		}
		var id identity
		if schema.Digest(data) == s.Digest && json.Unmarshal(data, &id) == nil {
			v.recipe = &id
		}
		var d analysis.Debating
		if v.recipe != nil && json.Unmarshal(data, &d) == nil {
			v.debating = &d
		}
	}
	return nil
}

// indexStages groups the run's stage manifests by step, so that the checks of a step look only at its own.
func indexStages(v *evidence) {
	v.stages = map[string][]committed{}
	for _, m := range v.ordered() {
		if m.Warm == "" && m.Shard < 0 {
			v.stages[m.Step] = append(v.stages[m.Step], m)
		}
	}
}

// keys lists the manifests that could be read and are not foreign, in order.
func (v *evidence) keys() []string {
	var out []string
	for key, m := range v.manifests {
		if !m.foreign {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// ordered lists the manifests in the order of their keys.
func (v *evidence) ordered() []committed {
	out := make([]committed, 0, len(v.manifests))
	for _, key := range v.keys() {
		out = append(out, v.manifests[key])
	}
	return out
}
