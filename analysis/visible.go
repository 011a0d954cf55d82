package analysis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/schema"
)

// Visible is the part of one run that can be read.
type Visible struct {
	record  *Record
	run     string
	prepare schema.Manifest
	lineage []schema.ForkPoint // the run, and those that it shares steps with
	heads   []schema.Head      // of numbered steps, in their order
	steps   []int
	listed  func() ([]schema.Place, error) // all manifests, in the order of their keys
	// replayed holds the stage manifests that heads do not name, if they are selected.
	replayed map[made][]schema.Ref
	// compactions are those of the steps that have merged copies of shards.
	compactions func() (map[string]schema.Manifest, error)
}

// Shard is one visible data shard and its place.
type Shard struct {
	schema.ShardInfo
	Run  string
	Step int // NoStep before the first step
	Gen  int
}

// NoStep is the step of shards that were made before the first one.
const NoStep = -1

// Prepared returns the manifest that has committed a run's recipe: it is the first that a run commits.
func (r *Record) Prepared(ctx context.Context, run string) (schema.Manifest, error) {
	if err := schema.CheckRunID(run); err != nil {
		return schema.Manifest{}, fmt.Errorf("%w: %w", ErrNoRun, err)
	}
	prepare, _, found, err := r.writer.Lookup(ctx, schema.AtInit(run, schema.StagePrepare))
	if err == nil && !found {
		err = r.NoRun(ctx, run, fmt.Sprintf("%s has committed nothing in %s", run, r.objects))
	}
	return prepare, err
}

// Visible finds the part of a run that can be read now.
func (r *Record) Visible(ctx context.Context, run string) (*Visible, error) {
	prepare, err := r.Prepared(ctx, run)
	if err != nil {
		return nil, err
	}
	v := &Visible{record: r, run: run, prepare: prepare}
	if v.lineage, err = r.lineage(ctx, prepare); err != nil {
		return nil, err
	}
	v.listed = sync.OnceValues(func() ([]schema.Place, error) { return v.allPlaces(ctx) })
	v.compactions = sync.OnceValues(func() (map[string]schema.Manifest, error) { return v.readCompactions(ctx) })
	for _, step := range []func() error{
		func() error { return v.readHeads(ctx) }, func() error { return v.checkGaps(ctx) }, v.checkGeneration,
		func() error { return v.readGenerations(ctx) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (v *Visible) readHeads(ctx context.Context) error {
	listed, err := v.record.objects.List(ctx, schema.HeadsPrefix(v.run))
	if err != nil {
		return fmt.Errorf("list heads of run %s: %w", v.run, err)
	}
	heads := make([]schema.Head, len(listed))
	if err := rescue.Each(ctx, fetches, len(listed), func(ctx context.Context, i int) error {
		_, step, err := schema.ParseHeadKey(listed[i].Key)
		if err != nil {
			return err
		}
		heads[i], _, _, err = v.record.writer.Head(ctx, v.run, step)
		return err
	}); err != nil {
		return err
	}
	for _, h := range heads {
		if _, ok := stepOf(h.Step); ok {
			v.heads = append(v.heads, h)
		}
	}
	slices.SortFunc(v.heads, func(a, b schema.Head) int { return cmp.Compare(mustStep(a.Step), mustStep(b.Step)) })
	for _, h := range v.heads {
		v.steps = append(v.steps, mustStep(h.Step))
	}
	return nil
}

// stepOf returns a step's number; ok is false for what precedes the first step.
func stepOf(step string) (int, bool) {
	return schema.Place{Step: step}.StepNumber()
}

// mustStep is stepOf for steps that are known to be numbered.
func mustStep(step string) int {
	n, _ := stepOf(step)
	return n
}

// Run is the run's name.
func (v *Visible) Run() string { return v.run }

// Steps lists the steps with heads.
func (v *Visible) Steps() []int { return slices.Clone(v.steps) }

// StepsInWords describes which steps there are, for messages.
func StepsInWords(steps []int) string {
	switch n := len(steps); n {
	case 0:
		return "no step"
	case 1:
		return fmt.Sprintf("step %d", steps[0])
	default:
		return fmt.Sprintf("%d steps, from %d to %d", n, steps[0], steps[n-1])
	}
}

// refs returns the manifests of a finished step that hold a table.
func (v *Visible) refs(table schema.Table, h schema.Head) []schema.Ref {
	for _, stage := range tablesRead.InHeads[table] {
		if found := v.chosen(h, stage); len(found) > 0 {
			return found
		}
	}
	return nil
}

// Shards returns the run's visible shards of a table, in the order of their steps. A merged copy takes the place of the
// shards that it copies.
func (v *Visible) Shards(ctx context.Context, table schema.Table) ([]Shard, error) {
	if _, inHeads := tablesRead.InHeads[table]; !inHeads {
		return v.shardsWithoutHead(ctx, table)
	}
	var refs [][]schema.Ref
	for _, h := range v.heads {
		refs = append(refs, v.refs(table, h))
	}
	return v.eachStep(ctx, table, refs)
}

// MadeBy returns all shards that a stage of the finished steps has committed, in the order of the steps, whichever
// table they are of: a table is read behind one stage, but another stage may write rows of it too.
func (v *Visible) MadeBy(ctx context.Context, stage string) ([]Shard, error) {
	found := make([][]Shard, len(v.heads))
	err := rescue.Each(ctx, fetches, len(v.heads), func(ctx context.Context, i int) error {
		manifests, err := v.record.manifests(ctx, v.chosen(v.heads[i], stage))
		for _, m := range manifests {
			for _, s := range m.Shards {
				found[i] = append(found[i], shardOf(m, s))
			}
		}
		return err
	})
	return ofRun(v.run, slices.Concat(found...)), err
}

// StepShards returns one step's shards of a table that its head leads to; the step must have a head.
func (v *Visible) StepShards(ctx context.Context, step int, table schema.Table) ([]Shard, error) {
	i := slices.Index(v.steps, step)
	if i < 0 {
		return nil, fmt.Errorf("%w: step %d of run %s, which has %s", ErrNoStep, step, v.run, StepsInWords(v.Steps()))
	}
	return v.copyOrShards(ctx, table, v.refs(table, v.heads[i]))
}

// withoutHead reads the manifests of a table that is visible without a head, in the order of their steps. If stages are
// named, it reads only theirs.
func (v *Visible) withoutHead(ctx context.Context, table schema.Table, only ...string) ([]schema.Manifest, error) {
	places, err := v.placesWithoutHead(table, only...)
	if err != nil {
		return nil, err
	}
	return v.record.at(ctx, places)
}

func (v *Visible) placesWithoutHead(table schema.Table, only ...string) ([]schema.Place, error) {
	all, err := v.listed()
	if err != nil {
		return nil, err
	}
	return inGeneration(v.record.gen, slices.DeleteFunc(slices.Clone(all), func(p schema.Place) bool {
		return !tablesRead.WithoutHead[table].Include(p) || (len(only) > 0 && !slices.Contains(only, p.Stage))
	})), nil
}

// at reads the manifests of places, in the order of their steps. A manifest that has parts has their shards.
func (r *Record) at(ctx context.Context, places []schema.Place) ([]schema.Manifest, error) {
	out, _, err := r.lookups(ctx, places)
	if err != nil {
		return nil, err
	}
	for i, m := range out {
		parts, err := r.readAll(ctx, m.Parts)
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			out[i].Shards = append(out[i].Shards, part.Shards...)
		}
	}
	slices.SortStableFunc(out, func(a, b schema.Manifest) int { return cmp.Compare(placed(a), placed(b)) })
	return out, nil
}

// placed returns the step of a manifest, or NoStep.
func placed(m schema.Manifest) int {
	if n, ok := m.StepNumber(); ok {
		return n
	}
	return NoStep
}

// ofRun names a run in shards, whichever run has made them.
func ofRun(run string, shards []Shard) []Shard {
	for i := range shards {
		shards[i].Run = run
	}
	return shards
}

// shardOf is a shard that a manifest names.
func shardOf(m schema.Manifest, s schema.ShardInfo) Shard {
	return Shard{ShardInfo: s, Run: m.Run, Step: placed(m), Gen: m.Gen}
}

func shardsOf(table schema.Table, manifests []schema.Manifest) []Shard {
	var out []Shard
	for _, m := range manifests {
		for _, s := range m.ShardsOf(table) {
			out = append(out, shardOf(m, s))
		}
	}
	return out
}
