package analysis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
)

// Origin says what a run was made from, and by what.
type Origin struct {
	Recipe     []byte      `json:"-"`      // canonical JSON, as the run began with it
	Config     string      `json:"config"` // its digest
	Amendments []Amendment `json:"amendments"`
	// Fork is the step of another run after which the run goes on; absent if it is no fork.
	Fork schema.ForkPoint `json:"fork,omitzero"`
	// Programs are the digests of the programs that made the run, each with the first step that it made.
	Programs []Program `json:"programs"`
	// Engine is the kind of the engine, and Device what it ran on or why it was chosen; "" if the record does not say.
	Engine string `json:"engine"`
	Device string `json:"device"`
	// Machine describes what the warm start computed with, name by name; empty if there was none.
	Machine map[string]string `json:"machine"`
	Hosts   []string          `json:"hosts"`  // that executed activities, sorted
	Policy  string            `json:"policy"` // digest of the first policy's checkpoint; "" if there is none
}

// Amendment is a change of the recipe during the run that is in force.
type Amendment struct {
	From int      `json:"from_step"` // the first step under it
	Set  []string `json:"set"`       // path=value
	// Actor is who asked for it, by the audit log; "" if it does not say.
	Actor string `json:"actor,omitempty"`
}

// String is one line for people.
func (a Amendment) String() string {
	text := fmt.Sprintf("from step %d: %s", a.From, strings.Join(a.Set, " "))
	if a.Actor != "" {
		text += " (" + a.Actor + ")"
	}
	return text
}

// Program is a program that worked on a run.
type Program struct {
	Digest string `json:"digest"`
	From   int    `json:"from_step"` // 0: it prepared the run
	// Version is what it was built from; "" if no worker has noted it.
	Version string `json:"version,omitempty"`
}

// Name is the program's digest, and its version where that is known.
func (p Program) Name() string {
	if p.Version == "" {
		return p.Digest
	}
	return p.Digest + " (" + strings.Trim(p.Version, "()") + ")" // Go says (devel) of a build outside a release
}

// Origin reads what the run was made from, and by what.
func (v *Visible) Origin(ctx context.Context) (Origin, error) {
	out := Origin{Config: v.prepare.Config, Fork: v.Fork(), Engine: v.prepare.Note[schema.NoteEngine],
		Device: v.prepare.Note[schema.NoteEngineWhy], Machine: map[string]string{}, Hosts: []string{}}
	var err error
	if out.Recipe, err = v.record.document(ctx, v.prepare); err != nil {
		return out, err
	}
	if out.Amendments, err = v.record.Amendments(ctx, v.run); err != nil {
		return out, err
	}
	for _, read := range []func(context.Context, *Visible) error{out.readPrograms, out.readMachine, out.readHosts} {
		if err := read(ctx, v); err != nil {
			return out, err
		}
	}
	return out, nil
}

// Amendments reads a run's changes of its recipe that are in force, in their order: the last one and the chain that it
// was made from. The run refused all others.
func (r *Record) Amendments(ctx context.Context, run string) ([]Amendment, error) {
	made, refs, err := r.changes(ctx, run)
	chain := []Amendment{}
	if err != nil || len(made) == 0 {
		return chain, err
	}
	actors, err := r.amenders(ctx, run)
	if err != nil {
		return nil, err
	}
	var wanted schema.Ref
	for i, m := range slices.Backward(made) {
		if wanted.Key != "" && refs[i] != wanted {
			continue
		}
		from, err := strconv.Atoi(m.Note[schema.NoteFromStep])
		if err != nil || len(m.Inputs) == 0 {
			return nil, fmt.Errorf("%w: %s: names no step or no recipe that it changes", commit.ErrDamaged,
				m.ManifestKey())
		}
		chain = append(chain, Amendment{From: from, Set: strings.Fields(m.Note[schema.NoteChanges]),
			Actor: actors[m.ManifestKey()]})
		wanted = m.Inputs[0]
	}
	slices.Reverse(chain)
	return chain, nil
}

// amenders reads who asked for a run's changes of its recipe, by the keys of their manifests.
func (r *Record) amenders(ctx context.Context, run string) (map[string]string, error) {
	deeds, err := r.Deeds(ctx, run)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, d := range deeds {
		if d.Action == schema.DeedAmend {
			out[d.Manifest] = d.Actor
		}
	}
	return out, nil
}

// readPrograms lists the programs that prepared the run and made its steps' last stages.
func (o *Origin) readPrograms(ctx context.Context, v *Visible) error {
	o.Programs = []Program{{Digest: v.prepare.Code}}
	var refs []schema.Ref
	var steps []int
	for i, h := range v.heads {
		for _, stage := range []string{schema.StagePublish, schema.StageReward} { // an import publishes nothing
			if made := h.Stages[stage]; len(made) > 0 {
				refs, steps = append(refs, made[len(made)-1]), append(steps, v.steps[i])
				break
			}
		}
	}
	manifests, err := v.record.readAll(ctx, refs)
	if err != nil {
		return err
	}
	for i, m := range manifests {
		if last := o.Programs[len(o.Programs)-1]; m.Code != last.Digest {
			o.Programs = append(o.Programs, Program{Digest: m.Code, From: steps[i]})
		}
	}
	for i, p := range o.Programs {
		noted, _, err := readJSON[schema.Program](ctx, v.record, schema.ProgramKey(p.Digest))
		if err != nil {
			return err
		}
		o.Programs[i].Version = noted.Version
	}
	return nil
}

// readMachine reads the first policy and what its warm start computed with.
func (o *Origin) readMachine(ctx context.Context, v *Visible) error {
	m, _, found, err := v.record.writer.Lookup(ctx, schema.AtInit(v.run, schema.StageWarmStart))
	if err != nil || !found {
		return err
	}
	if m.Checkpoint != nil {
		o.Policy = m.Checkpoint.Digest
	}
	for _, ref := range m.Inputs {
		p, err := schema.ParseManifestKey(ref.Key)
		if err != nil || p.Warm == "" {
			continue
		}
		made, err := v.record.manifest(ctx, ref)
		if err != nil {
			return err
		}
		var inputs struct {
			Machine map[string]any `json:"machine"`
		}
		if err := v.record.recipe(ctx, made, &inputs); err != nil {
			return err
		}
		for name, value := range inputs.Machine {
			o.Machine[name] = fmt.Sprint(value)
		}
	}
	return nil
}

// readHosts lists the hosts in the measured times of activities. The times of single tool calls, which are many more,
// have the same hosts.
func (o *Origin) readHosts(ctx context.Context, v *Visible) error {
	rows, err := v.timings(ctx)
	for _, r := range rows {
		if r.Host != "" && !slices.Contains(o.Hosts, r.Host) {
			o.Hosts = append(o.Hosts, r.Host)
		}
	}
	slices.Sort(o.Hosts)
	return err
}
