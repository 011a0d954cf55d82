package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/activities/learn"
	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/resolver"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/activities/verdict"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/overlay"
)

// PrepareCheck lists the finished steps of a run: their pure stages can be recomputed.
type PrepareCheck struct{ *stage.Worker }

// Execute refuses a run that is not in the record, and a run without a finished step.
func (a PrepareCheck) Execute(ctx context.Context, e *stage.Env, run string) (api.CheckPlan, error) {
	out := api.CheckPlan{Code: a.Code}
	out.Timing = api.Timing{Stage: schema.StageReplay, Shard: -1, Turn: -1}
	err := a.Track(ctx, e, stage.AtInit(run), &out.Timing, func(ctx context.Context, _ *stage.Progress) (err error) {
		out.Steps, err = finishedSteps(ctx, a.Worker.Records, run)
		return err
	})
	return out, err
}

// finishedSteps lists the finished steps of a run in order. If there are none, the error is a bad input of the caller.
func finishedSteps(ctx context.Context, r record.Records, run string) ([]int, error) {
	if _, err := r.PreparedRun(ctx, run); err != nil {
		return nil, err
	}
	steps, err := r.Steps(ctx, run)
	if err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		return nil, badinput.Errorf("run_id: no step of run %s is done, so there is nothing to "+
			"replay; `ropewalk resume %s` continues it", run, run)
	}
	return steps, nil
}

// CheckReplay recomputes the pure stages of one step, each from its own committed inputs under its own recipe, and
// compares digests. The results stay in memory.
type CheckReplay struct{ *stage.Worker }

// Execute runs the real activities of the stages, over a store that is never written.
func (a CheckReplay) Execute(ctx context.Context, e *stage.Env, in api.CheckInput) (out api.Checked, err error) {
	timing := api.Timing{Stage: schema.StageReplay, Shard: -1, Turn: -1}
	at := api.Scope{Run: in.Run, Step: in.Step}
	err = a.Track(ctx, e, at, &timing, func(ctx context.Context, p *stage.Progress) (err error) {
		out, err = checkStep(ctx, a.Worker, in, p)
		return err
	})
	out.Timing = timing
	return out, err
}

// checkStep makes the pure stages of a step again in memory.
func checkStep(ctx context.Context, d *stage.Worker, in api.CheckInput, p *stage.Progress) (api.Checked, error) {
	out := api.Checked{Step: in.Step}
	made, err := stepStages(ctx, d.Records, in.Run, in.Step)
	if err != nil {
		return out, err
	}
	c := &check{worker: over(overlay.New(d.Store), d.Code, d.Recipes.Tokens), made: made, out: &out}
	for i, stage := range api.Pure() {
		if err := c.stage(ctx, stage); err != nil {
			return out, fmt.Errorf("step %d: %w", in.Step, err)
		}
		p.Set(i+1, len(api.Pure()))
	}
	return out, nil
}

// check is the replay of one step in memory.
type check struct {
	worker *stage.Worker
	made   *Made
	out    *api.Checked
}

// stage recomputes a stage, shard by shard if it was made so.
func (c *check) stage(ctx context.Context, stage string) error {
	for _, ref := range c.made.Refs[stage] {
		m, err := c.worker.Record.Read(ctx, ref)
		if err != nil {
			return err
		}
		parts, err := c.worker.Record.Parts(ctx, m)
		if err != nil {
			return err
		}
		if len(m.Parts) == 0 {
			parts = []schema.Manifest{m}
		}
		for _, part := range parts {
			if err := c.redoManifest(ctx, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// redoManifest recomputes one manifest's shards and compares them.
func (c *check) redoManifest(ctx context.Context, before schema.Manifest) error {
	ref, err := c.execute(ctx, before)
	if err != nil {
		return err
	}
	after, err := c.worker.Record.Read(ctx, ref)
	if err != nil {
		return err
	}
	if before.Code != c.worker.Code {
		c.out.Code = before.Code
	}
	c.out.Shards += len(before.Shards)
	for _, d := range Differences(before.Shards, after.Shards) {
		c.out.Differs = append(c.out.Differs, api.Different{Step: c.made.Step, Stage: before.Stage,
			Shard: before.Shard, Table: string(d.Table), Digest: d.Digest[:min(16, len(d.Digest))]})
	}
	return nil
}

// execute runs the activity that made a manifest on the inputs that the manifest names: the recipe first, then what
// the stage reads, in the order in which the activity lists them.
func (c *check) execute(ctx context.Context, m schema.Manifest) (schema.Ref, error) {
	recipe, err := record.MadeUnder(m)
	if err != nil {
		return schema.Ref{}, err
	}
	scope := api.Scope{Run: c.made.Run, Step: c.made.Step, Gen: c.made.Next, Config: recipe}
	redo := c.whole
	if m.Stage == schema.StageReward {
		redo = verdict.ScoreRewards{Worker: c.worker}.Redo
	}
	ref, err := redo(ctx, scope, m)
	if !errors.Is(err, verdict.ErrOtherInputs) {
		return ref, err
	}
	return schema.Ref{}, fmt.Errorf("%w: %s names %d inputs, which is not what its stage reads", commit.ErrDamaged,
		m.ManifestKey(), len(m.Inputs))
}

// whole runs a pure stage without shards on the inputs that a manifest names after its recipe. It returns
// errOtherInputs if the stage does not read these.
func (c *check) whole(ctx context.Context, scope api.Scope, before schema.Manifest) (schema.Ref, error) {
	in := api.StageInput{Scope: scope}
	var err error
	if in.Excluded, err = learn.ExcludedShards(before); err != nil {
		return schema.Ref{}, err
	}
	for _, ref := range before.Inputs[1:] {
		at, err := schema.ParseManifestKey(ref.Key)
		if err != nil {
			return schema.Ref{}, verdict.ErrOtherInputs
		}
		if at.Stage == before.Stage {
			in.Before = ref
		}
		in.Made = append(in.Made, api.StageRef{Stage: at.Stage, Ref: ref})
	}
	declared, _ := stages.Of(before.Stage)
	for _, read := range declared.Reads {
		if needed(read) && len(in.Made.All(read.Stage)) == 0 {
			return schema.Ref{}, verdict.ErrOtherInputs
		}
	}
	set, err := learn.Stages(c.worker)[declared.Activities[0].Name].Run(ctx, &stage.Env{}, in)
	if err != nil {
		return schema.Ref{}, err
	}
	result := (&api.Batch{}).Of(before.Stage)
	set(result)
	return result.Common().Manifest, nil
}

// needed reports whether a stage cannot be made without a stage that it reads. Not all recipes have every stage, and a
// shard without calls has no stage sandbox.
func needed(read stages.Read) bool {
	declared, _ := stages.Of(read.Stage)
	return !declared.Optional() && read.Stage != schema.StageSandbox
}

// over returns the state of stages that need no engine and no sandbox, over another store.
func over(objects store.Store, code string, tokens *tokenizer.Tokenizer) *stage.Worker {
	r := record.Records{Store: objects, Record: commit.New(objects)}
	return &stage.Worker{Records: r, Recipes: resolver.New(r, tokens), Code: code}
}
