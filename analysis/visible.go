package analysis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/schema"
)

// Visible is what may be read of one run.
type Visible struct {
	record  *Record
	run     string
	prepare schema.Manifest
	heads   []schema.Head // of numbered steps, in their order
	steps   []int
	listed  func() ([]schema.Place, error) // all manifests, in the order of their keys
	// replayed holds the stage manifests that heads do not name, where they are to be read.
	replayed map[made][]schema.Ref
}

// Shard is one visible data shard and where it belongs.
type Shard struct {
	schema.ShardInfo
	Run  string
	Step int // NoStep for what was made before the first step
	Gen  int
}

// NoStep is the step of shards that were made before the first one.
const NoStep = -1

// timingsPrefix starts the stages of measured times: of a step's activities, of a run's beside its
// steps, and of tool calls.
const timingsPrefix = "timings_"

// Visible finds what may be read of a run now.
func (r *Record) Visible(ctx context.Context, run string) (*Visible, error) {
	if err := schema.CheckRunID(run); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRun, err)
	}
	prepare, _, found, err := r.writer.Lookup(ctx, schema.AtInit(run, schema.StagePrepare))
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("%w: %s has committed nothing in %s", ErrNoRun, run, r.objects)
	}
	v := &Visible{record: r, run: run, prepare: prepare}
	v.listed = sync.OnceValues(func() ([]schema.Place, error) { return r.places(ctx, run) })
	for _, step := range []func() error{
		func() error { return v.readHeads(ctx) }, v.checkGeneration, func() error { return v.readGenerations(ctx) },
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
	if err := each(ctx, fetches, len(listed), func(ctx context.Context, i int) error {
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

// stepOf returns a step's number; ok is false before the first step.
func stepOf(step string) (int, bool) {
	return schema.Place{Step: step}.StepNumber()
}

// mustStep is stepOf for steps that are known to be numbered.
func mustStep(step string) int {
	n, _ := stepOf(step)
	return n
}

// places lists a run's manifests, in the order of their keys.
func (r *Record) places(ctx context.Context, run string) ([]schema.Place, error) {
	listed, err := r.objects.List(ctx, schema.ManifestsPrefix(run))
	if err != nil {
		return nil, fmt.Errorf("list manifests of run %s: %w", run, err)
	}
	var places []schema.Place
	for _, o := range listed {
		if p, err := schema.ParseManifestKey(o.Key); err == nil {
			places = append(places, p)
		}
	}
	return places, nil
}

// standsAlone reports a manifest that counts without a head.
func standsAlone(p schema.Place) bool {
	_, numbered := p.StepNumber()
	switch {
	case strings.HasPrefix(p.Stage, timingsPrefix):
		return true // those of calls are shards without a stage manifest
	case p.Shard >= 0:
		return false
	}
	return !numbered || p.Stage == schema.StageEvaluate
}

// Run is the run's name.
func (v *Visible) Run() string { return v.run }

// Steps lists the steps with heads.
func (v *Visible) Steps() []int { return slices.Clone(v.steps) }

// madeBy is the stage of a head that makes each table. An import's rollout holds the imported
// trajectories as well; assemble's replace them.
var madeBy = map[schema.Table]string{
	schema.Prompts: schema.StagePrompts, schema.Turns: schema.StageRollout, schema.ToolCalls: schema.StageSandbox,
	schema.Trajectories: schema.StageAssemble, schema.Gradings: schema.StageGrade, schema.Rewards: schema.StageReward, schema.Selection: schema.StageResample,
	schema.TokenOutputs: schema.StageForward,
	schema.Replay:       schema.StageBuffer, schema.Baselines: schema.StageBuffer, schema.ReplayBatch: schema.StageBuffer,
	schema.Batch: schema.StageAdvantage, schema.Updates: schema.StageUpdate,
}

// refs are the manifests of a finished step that hold a table.
func (v *Visible) refs(table schema.Table, h schema.Head) []schema.Ref {
	if found := v.chosen(h, madeBy[table]); len(found) > 0 || table != schema.Prompts {
		return found
	}
	return v.chosen(h, schema.StageRollout) // an import's, which holds the prompts too
}

// besideHeads reports whether a stage that counts without a head holds a table.
func besideHeads(table schema.Table, stage string) bool {
	switch table {
	case schema.Evaluations:
		return stage == schema.StageEvaluate
	case schema.Timings:
		return strings.HasPrefix(stage, timingsPrefix)
	}
	return false
}

// Shards returns the run's visible shards of a table, in the order of their steps.
func (v *Visible) Shards(ctx context.Context, table schema.Table) ([]Shard, error) {
	if _, inHeads := madeBy[table]; !inHeads {
		manifests, err := v.standing(ctx, func(stage string) bool { return besideHeads(table, stage) })
		return shardsOf(table, manifests), err
	}
	var all []schema.Ref
	for _, h := range v.heads {
		all = append(all, v.refs(table, h)...)
	}
	manifests, err := v.record.manifests(ctx, all)
	return shardsOf(table, manifests), err
}

// StepShards returns one step's shards of a table that heads name; the step must have a head.
func (v *Visible) StepShards(ctx context.Context, step int, table schema.Table) ([]Shard, error) {
	i := slices.Index(v.steps, step)
	if i < 0 {
		return nil, fmt.Errorf("%w: step %d of run %s", ErrNoStep, step, v.run)
	}
	manifests, err := v.record.manifests(ctx, v.refs(table, v.heads[i]))
	return shardsOf(table, manifests), err
}

// standing reads the manifests outside heads whose stage is wanted, in the order of their steps.
func (v *Visible) standing(ctx context.Context, wanted func(stage string) bool) ([]schema.Manifest, error) {
	all, err := v.listed()
	if err != nil {
		return nil, err
	}
	places := inGeneration(v.record.gen, slices.DeleteFunc(slices.Clone(all), func(p schema.Place) bool { return !standsAlone(p) || !wanted(p.Stage) }))
	out := make([]schema.Manifest, len(places))
	err = each(ctx, fetches, len(places), func(ctx context.Context, i int) (err error) {
		out[i], _, _, err = v.record.writer.Lookup(ctx, places[i])
		return err
	})
	slices.SortStableFunc(out, func(a, b schema.Manifest) int { return cmp.Compare(placed(a), placed(b)) })
	return out, err
}

// placed is the step of a manifest, or NoStep.
func placed(m schema.Manifest) int {
	if n, ok := m.StepNumber(); ok {
		return n
	}
	return NoStep
}

func shardsOf(table schema.Table, manifests []schema.Manifest) []Shard {
	var out []Shard
	for _, m := range manifests {
		for _, s := range m.ShardsOf(table) {
			out = append(out, Shard{ShardInfo: s, Run: m.Run, Step: placed(m), Gen: m.Gen})
		}
	}
	return out
}
