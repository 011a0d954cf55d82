package activities

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/overlay"
)

// PrepareCheck lists the steps of a run whose pure stages can be made again: those that are done.
type PrepareCheck struct{ *Deps }

// Execute refuses a run that the record does not hold, and one without a step that is done.
func (a PrepareCheck) Execute(ctx context.Context, run string) (wire.CheckPlan, error) {
	out := wire.CheckPlan{Code: a.Code}
	timing := wire.Timing{Stage: wire.StageReplay, Shard: -1, Turn: -1}
	err := tracked(ctx, &timing, func(ctx context.Context, _ *progress) error {
		if _, err := a.preparedRun(ctx, run); err != nil {
			return err
		}
		heads, err := a.Store.List(ctx, schema.HeadsPrefix(run))
		if err != nil {
			return fmt.Errorf("list heads of run %s: %w", run, err)
		}
		for _, o := range heads {
			_, step, err := schema.ParseHeadKey(o.Key)
			if err != nil {
				return fmt.Errorf("%w: list heads of run %s: %w", commit.ErrDamaged, run, err)
			}
			if n, err := strconv.Atoi(step); err == nil {
				out.Steps = append(out.Steps, n)
			}
		}
		slices.Sort(out.Steps)
		if len(out.Steps) == 0 {
			return refuse(wire.FailBadInput, "run_id: no step of run %s is done, so there is nothing to replay; `ropewalk resume %s` goes on with it", run, run)
		}
		return nil
	})
	out.Timing = timing
	return out, err
}

// CheckReplay makes the pure stages of one step again, each from its own committed inputs under its
// own recipe, and compares digests. What it makes stays in memory.
type CheckReplay struct{ *Deps }

// Execute runs the stages' activities themselves, over a store that is never written.
func (a CheckReplay) Execute(ctx context.Context, in wire.CheckInput) (wire.Checked, error) {
	out := wire.Checked{Step: in.Step}
	timing := wire.Timing{Stage: wire.StageReplay, Shard: -1, Turn: -1}
	err := tracked(ctx, &timing, func(ctx context.Context, p *progress) error {
		made, err := a.stepStages(ctx, in.Run, in.Step)
		if err != nil {
			return err
		}
		objects := overlay.New(a.Store)
		c := &check{deps: &Deps{Store: objects, Record: commit.New(objects), Code: a.Code, tokens: a.tokens}, made: made, out: &out}
		for i, stage := range wire.Pure() {
			if err := c.stage(ctx, stage); err != nil {
				return fmt.Errorf("step %d: %w", in.Step, err)
			}
			p.set(i+1, len(wire.Pure()))
		}
		return nil
	})
	out.Timing = timing
	return out, err
}

// check is the replay of one step in memory.
type check struct {
	deps *Deps
	made *stepStages
	out  *wire.Checked
}

// stage makes a stage again, shard by shard where it was made so.
func (c *check) stage(ctx context.Context, stage string) error {
	for _, ref := range c.made.refs[stage] {
		m, err := c.deps.Record.Read(ctx, ref)
		if err != nil {
			return err
		}
		parts, err := c.deps.Record.Parts(ctx, m)
		if err != nil {
			return err
		}
		if len(m.Parts) == 0 {
			parts = []schema.Manifest{m}
		}
		for _, part := range parts {
			if err := c.again(ctx, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// again makes one manifest's shards again and compares them.
func (c *check) again(ctx context.Context, before schema.Manifest) error {
	ref, err := c.execute(ctx, before)
	if err != nil {
		return err
	}
	after, err := c.deps.Record.Read(ctx, ref)
	if err != nil {
		return err
	}
	if before.Code != c.deps.Code {
		c.out.Code = before.Code
	}
	for i, s := range before.Shards {
		c.out.Shards++
		digest := ""
		if i < len(after.Shards) {
			digest = after.Shards[i].Digest
		}
		if digest != s.Digest {
			differs := wire.Different{Step: c.made.step, Stage: before.Stage, Shard: before.Shard, Digest: digest[:min(16, len(digest))]}
			if len(before.Shards) > 1 {
				differs.Table = string(s.Table)
			}
			c.out.Differs = append(c.out.Differs, differs)
		}
	}
	return nil
}

// execute runs the activity that made a manifest on the inputs that it names: the recipe first, then
// what the stage reads, in the order in which the activity lists them.
func (c *check) execute(ctx context.Context, m schema.Manifest) (schema.Ref, error) {
	recipe, err := madeUnder(m)
	if err != nil {
		return schema.Ref{}, err
	}
	scope := wire.Scope{Run: c.made.run, Step: c.made.step, Gen: c.made.next, Config: recipe}
	inputs := m.Inputs[1:]
	switch {
	case m.Stage == wire.StageReward && (len(inputs) == 1 || len(inputs) == 2 && isOfStage(inputs[1], wire.StageGrade)):
		if err := c.scored(ctx, scope); err != nil {
			return schema.Ref{}, err
		}
		in := wire.ScoreInput{Scope: scope, Shard: m.Shard, Trajectories: inputs[0]}
		if len(inputs) == 2 {
			in.Gradings = inputs[1]
		}
		out, err := ScoreRewards{c.deps}.Execute(ctx, in)
		return out.Manifest, err
	case m.Stage == wire.StageResample && len(inputs) >= 1:
		in := wire.ResampleInput{Scope: scope, Rewards: inputs[0]}
		if in.Excluded, err = excludedShards(m); err != nil {
			return schema.Ref{}, err
		}
		for _, ref := range inputs {
			if isOfStage(ref, wire.StagePrompts) {
				in.Prompts = ref
			}
		}
		out, err := Resample{c.deps}.Execute(ctx, in)
		return out.Manifest, err
	case m.Stage == wire.StageAdvantage && len(inputs) >= 3:
		out, err := ComputeAdvantages{c.deps}.Execute(ctx, advantageInput(scope, inputs))
		return out.Manifest, err
	case m.Stage == wire.StageBuffer && (len(inputs) == 2 || len(inputs) == 3):
		in := wire.BufferInput{Scope: scope, Rewards: inputs[len(inputs)-2], Batch: inputs[len(inputs)-1]}
		if len(inputs) == 3 {
			in.Previous = inputs[0]
		}
		out, err := UpdateReplayBuffer{c.deps}.Execute(ctx, in)
		return out.Manifest, err
	}
	return schema.Ref{}, fmt.Errorf("%w: %s names %d inputs, which is not what its stage reads", commit.ErrDamaged, m.ManifestKey(), len(m.Inputs))
}

// advantageInput sorts a stage's inputs by the stages that made them. What else it reads, it finds
// itself.
func advantageInput(scope wire.Scope, inputs []schema.Ref) wire.AdvantageInput {
	in := wire.AdvantageInput{Scope: scope}
	for _, ref := range inputs {
		switch {
		case isOfStage(ref, wire.StageRollout):
			in.Turns = append(in.Turns, ref)
		case isOfStage(ref, wire.StageReward):
			in.Rewards = ref
		case isOfStage(ref, wire.StageResample):
			in.Selection = ref
		case isOfStage(ref, wire.StageForward):
			in.Outputs = ref
		}
	}
	return in
}

func (c *check) scored(ctx context.Context, scope wire.Scope) error {
	recipe, err := c.deps.recipe(ctx, scope)
	if err != nil {
		return err
	}
	return scoredFromRecord(recipe.Reward.Name)
}
