package workflows

import (
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/schema"
)

// lane is one shard's way from prompts to rewards.
type lane struct {
	shard     int
	turns     []schema.Ref // shard manifests of the rollout, one a turn
	tools     []schema.Ref // shard manifests of the sandbox, one a turn that called tools
	grade     bool         // whether the recipe asks for symbolic grading
	assembled schema.Ref
	graded    schema.Ref // zero where nothing was asked for
	scored    wire.Scored
	timings   []wire.Timing
}

// rollout drives all shards of a round side by side, numbered from first on; a shard that fails does not stop the others, whose
// committed work is adopted when the step is run again.
func (s *trainStep) rollout(ctx workflow.Context, first int, prompts schema.Ref) ([]lane, error) {
	lanes := make([]lane, s.in.Prepared.Plan.Shards)
	failures := make([]error, len(lanes))
	group := workflow.NewWaitGroup(ctx)
	for i := range lanes {
		lanes[i].shard, lanes[i].grade = first+i, s.in.Prepared.Plan.Grade
		if s.skipped(first + i) {
			continue
		}
		group.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer group.Done()
			failures[i] = lanes[i].run(ctx, s.home, s.scope, prompts, s.in.Policy, s.in.Prepared.Plan.MaxTurns)
		})
	}
	group.Wait(ctx)
	for i := range lanes {
		s.times.add(lanes[i].timings...)
	}
	lanes = slices.DeleteFunc(lanes, func(l lane) bool { return s.skipped(l.shard) })
	return lanes, errors.Join(failures...)
}

func (s *trainStep) skipped(shard int) bool {
	return slices.ContainsFunc(s.in.Skip, func(e wire.ExcludedShard) bool { return e.Shard == shard })
}

// at says where in the lane an error came up.
func (l *lane) at(stage string, turn int, err error) error {
	return stageError{stage: stage, shard: l.shard, turn: turn, err: err}
}

// run alternates *generate turn* and *execute tool calls* until no trajectory of the shard
// waits for a tool, then assembles, grades where that is asked for, and scores the episodes.
func (l *lane) run(ctx workflow.Context, h *home, scope wire.Scope, prompts schema.Ref, policy wire.PolicyRef, maxTurns int) error {
	for turn := range maxTurns {
		generated, err := sample(ctx, h, scope, wire.GenerateRollouts, fmt.Sprintf("shard %d, turn %d", l.shard, turn), wire.GenerateInput{
			Scope: scope, Shard: l.shard, Turn: turn, Prompts: prompts, Turns: l.turns, Tools: l.tools, Policy: policy,
		}, (*wire.Generated).Its)
		if err != nil {
			return l.at(wire.StageRollout, turn, err)
		}
		l.turns = append(l.turns, generated.Manifest)
		l.timings = append(l.timings, generated.Timing)
		if generated.Calls == 0 {
			break
		}
		if err := l.execute(ctx, scope, prompts, turn, generated.Calls); err != nil {
			return err
		}
	}
	return l.score(ctx, scope, prompts)
}

func (l *lane) execute(ctx workflow.Context, scope wire.Scope, prompts schema.Ref, turn, calls int) error {
	done, err := call[wire.ToolsDone](ctx, wire.ExecuteToolCalls, fmt.Sprintf("shard %d, turn %d, %d calls", l.shard, turn, calls),
		wire.ToolsInput{Scope: scope, Shard: l.shard, Turn: turn, Prompts: prompts, Turns: l.turns, Tools: l.tools})
	if err != nil {
		return l.at(wire.StageSandbox, turn, err)
	}
	l.tools = append(l.tools, done.Manifest)
	l.timings = append(l.timings, done.Timing)
	return nil
}

func (l *lane) score(ctx workflow.Context, scope wire.Scope, prompts schema.Ref) error {
	assembled, err := call[wire.Done](ctx, wire.AssembleTrajectories, fmt.Sprintf("shard %d", l.shard), wire.AssembleInput{
		Scope: scope, Shard: l.shard, Prompts: prompts, Turns: l.turns, Tools: l.tools,
	})
	if err != nil {
		return l.at(wire.StageAssemble, -1, err)
	}
	l.assembled = assembled.Manifest
	l.timings = append(l.timings, assembled.Timing)
	if err := l.compare(ctx, scope); err != nil {
		return err
	}
	l.scored, err = call[wire.Scored](ctx, wire.ScoreRewards, fmt.Sprintf("shard %d", l.shard), wire.ScoreInput{
		Scope: scope, Shard: l.shard, Trajectories: assembled.Manifest, Gradings: l.graded,
	})
	if err != nil {
		return l.at(wire.StageReward, -1, err)
	}
	l.timings = append(l.timings, l.scored.Timing)
	return nil
}

// compare has the answers compared symbolically, where the recipe asks for it.
func (l *lane) compare(ctx workflow.Context, scope wire.Scope) error {
	if !l.grade {
		return nil
	}
	graded, err := call[wire.Graded](ctx, wire.GradeAnswers, fmt.Sprintf("shard %d", l.shard), wire.GradeInput{
		Scope: scope, Shard: l.shard, Trajectories: l.assembled,
	})
	if err != nil {
		return l.at(wire.StageGrade, -1, err)
	}
	l.graded = graded.Manifest
	l.timings = append(l.timings, graded.Timing)
	return nil
}

// stageParts lists, stage by stage and turn by turn, the shard manifests of all lanes. A shard
// that finished earlier than others has no part in their later turns.
func stageParts(lanes []lane) []wire.StageParts {
	var out []wire.StageParts
	for turn := 0; ; turn++ {
		rollout := wire.StageParts{Stage: wire.StageRollout, Turn: turn}
		sandbox := wire.StageParts{Stage: wire.StageSandbox, Turn: turn}
		for _, l := range lanes {
			if turn < len(l.turns) {
				rollout.Parts = append(rollout.Parts, l.turns[turn])
			}
			if turn < len(l.tools) {
				sandbox.Parts = append(sandbox.Parts, l.tools[turn])
			}
		}
		if len(rollout.Parts) == 0 {
			break
		}
		out = append(out, rollout)
		if len(sandbox.Parts) > 0 {
			out = append(out, sandbox)
		}
	}
	assemble := wire.StageParts{Stage: wire.StageAssemble, Turn: -1}
	grade := wire.StageParts{Stage: wire.StageGrade, Turn: -1}
	reward := wire.StageParts{Stage: wire.StageReward, Turn: -1}
	for _, l := range lanes {
		assemble.Parts = append(assemble.Parts, l.assembled)
		if l.grade {
			grade.Parts = append(grade.Parts, l.graded)
		}
		reward.Parts = append(reward.Parts, l.scored.Manifest)
	}
	if out = append(out, assemble); len(grade.Parts) > 0 {
		out = append(out, grade)
	}
	return append(out, reward)
}
