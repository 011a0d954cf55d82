package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/schema"
)

// ReplayStageResult is what a replay, or a check, returns.
type ReplayStageResult struct {
	Run  string `json:"run_id"`
	Step int    `json:"step,omitempty"`
	// Gen is the generation that the replay has committed beside the step's own.
	Gen    int                    `json:"gen,omitempty"`
	Stages []wire.StageComparison `json:"stages,omitempty"`
	Check  *CheckState            `json:"check,omitempty"`
}

// replayStage is ReplayStage's state.
type replayStage struct {
	in       ReplayStageInput
	stages   []string
	prepared wire.ReplayPrepared
	scope    wire.Scope
	made     map[string]schema.Ref // replayed stage manifests
	result   ReplayStageResult
	stage    string
	failure  string
}

// ReplayStage makes pure stages of a step again (reward, resample, advantage, buffer), from committed inputs
// and possibly under other settings, in a generation of its own. It moves no head and needs nothing
// but the record: neither engine, environment, nor the history of the run.
func ReplayStage(ctx workflow.Context, in ReplayStageInput) (ReplayStageResult, error) {
	stages, err := in.validate()
	if err != nil {
		return ReplayStageResult{}, refuse(ctx, err)
	}
	attributes := []temporal.SearchAttributeUpdate{attrRunID.ValueSet(in.Run)}
	if in.Step > 0 {
		attributes = append(attributes, attrStep.ValueSet(int64(in.Step)))
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, attributes...); err != nil {
		return ReplayStageResult{}, fmt.Errorf("set search attributes: %w", err)
	}
	r := &replayStage{in: in, stages: stages, made: map[string]schema.Ref{}, result: ReplayStageResult{Run: in.Run, Step: in.Step}}
	if in.Check {
		err = r.check(ctx)
	} else {
		err = r.execute(ctx)
	}
	if err != nil && !workflow.IsContinueAsNewError(err) {
		err = r.fail(ctx, err)
	}
	return r.result, err
}

func (r *replayStage) execute(ctx workflow.Context) error {
	r.enter(ctx, wire.StageReplay)
	var err error
	info := workflow.GetInfo(ctx)
	r.prepared, err = call[wire.ReplayPrepared](ctx, wire.PrepareReplay, "claim a generation", wire.ReplayInput{
		Run: r.in.Run, Step: r.in.Step, Stages: r.stages, Set: r.in.Set, Follow: r.in.Through == "",
		Claim: info.WorkflowExecution.ID + " " + info.FirstRunID,
	})
	if err != nil {
		return err
	}
	r.result.Gen = r.prepared.Gen
	if len(r.prepared.Stages) > 0 {
		r.stages = r.prepared.Stages
	}
	r.scope = wire.Scope{Run: r.in.Run, Step: r.in.Step, Gen: r.prepared.Gen, Config: r.prepared.Manifest}
	for _, stage := range r.stages {
		r.enter(ctx, stage)
		if err := r.run(ctx, stage); err != nil {
			return err
		}
	}
	return r.compare(ctx)
}

// run makes one stage, from what is replayed before it or else from what the step has committed.
func (r *replayStage) run(ctx workflow.Context, stage string) error {
	switch stage {
	case wire.StageReward:
		return r.reward(ctx)
	case wire.StageResample:
		out, err := call[wire.Resampled](ctx, wire.Resample, r.prepared.Chain, wire.ResampleInput{
			Scope: r.scope, Rewards: r.latest(wire.StageReward, r.prepared.Rewards),
			Prompts: r.prepared.Prompts, Excluded: r.prepared.Excluded,
		})
		r.made[stage] = out.Manifest
		return err
	case wire.StageAdvantage:
		out, err := call[wire.Advantages](ctx, wire.ComputeAdvantages, "the training batch", wire.AdvantageInput{
			Scope: r.scope, Turns: r.prepared.Turns,
			Rewards:   r.latest(wire.StageReward, r.prepared.Rewards),
			Selection: r.latest(wire.StageResample, r.prepared.Selection),
			Outputs:   r.prepared.Outputs,
		})
		r.made[stage] = out.Manifest
		return err
	case wire.StageBuffer:
		out, err := call[wire.Buffered](ctx, wire.UpdateReplayBuffer, "what is learnt from again", wire.BufferInput{
			Scope: r.scope, Previous: r.prepared.Buffer,
			Rewards: r.latest(wire.StageReward, r.prepared.Rewards),
			Batch:   r.latest(wire.StageAdvantage, r.prepared.Batch),
		})
		r.made[stage] = out.Manifest
		return err
	}
	return fmt.Errorf("no activity for stage %s", stage)
}

func (r *replayStage) latest(stage string, committed schema.Ref) schema.Ref {
	if ref, ok := r.made[stage]; ok {
		return ref
	}
	return committed
}

// reward scores every shard and commits the stage.
func (r *replayStage) reward(ctx workflow.Context) error {
	gradings := map[int]schema.Ref{}
	for _, g := range r.prepared.Gradings {
		gradings[g.Shard] = g.Ref
	}
	parts := make([]schema.Ref, len(r.prepared.Trajectories))
	err := sideBySideOf(ctx, len(parts), func(ctx workflow.Context, i int) error {
		shard := r.prepared.Trajectories[i]
		out, err := call[wire.Scored](ctx, wire.ScoreRewards, fmt.Sprintf("shard %d", shard.Shard), wire.ScoreInput{
			Scope: r.scope, Shard: shard.Shard, Trajectories: shard.Ref, Gradings: gradings[shard.Shard],
		})
		parts[i] = out.Manifest
		return err
	})
	if err != nil {
		return err
	}
	r.made[wire.StageReward], _, err = commitStage(ctx, r.scope, wire.StageReward, parts)
	return err
}

// compare finds out which stages came out as they were.
func (r *replayStage) compare(ctx workflow.Context) error {
	r.enter(ctx, wire.StageCompare)
	before := map[string]schema.Ref{}
	for _, b := range r.prepared.Before {
		before[b.Stage] = b.Ref
	}
	in := wire.CompareInput{Scope: r.scope}
	for _, stage := range r.stages {
		in.Stages = append(in.Stages, wire.StagePair{Stage: stage, Old: before[stage], New: r.made[stage]})
	}
	out, err := call[wire.Compared](ctx, wire.CompareReplay, "digests before and after", in)
	if err != nil {
		return err
	}
	r.result.Stages = out.Stages
	r.enter(ctx, "done")
	return nil
}

// enter tells the UI's details and the search attributes where the replay is.
func (r *replayStage) enter(ctx workflow.Context, stage string) {
	r.stage = stage
	workflow.SetCurrentDetails(ctx, r.markdown())
	// Upserting fails only for keys that cannot be encoded; these are constants.
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrStage.ValueSet(stage))
}

// fail says what failed and where.
func (r *replayStage) fail(ctx workflow.Context, cause error) error {
	if temporal.IsCanceledError(cause) {
		return cause
	}
	kind, text := failure(cause)
	if kind != wire.FailBadInput {
		text = r.stage + ": " + text
	}
	r.failure = text
	workflow.SetCurrentDetails(ctx, r.markdown())
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrFailureKind.ValueSet(kind))
	return temporal.NewNonRetryableApplicationError(text, kind, nil)
}

// markdown draws the state for Temporal's UI.
func (r *replayStage) markdown() string {
	var b strings.Builder
	if r.in.Check {
		fmt.Fprintf(&b, "**%s** · check of the pure stages · %s\n\n", r.in.Run, r.stage)
		r.result.Check.write(&b)
	} else {
		fmt.Fprintf(&b, "**%s** · step %d · replay of %s · %s\n\n", r.in.Run, r.in.Step, strings.Join(r.stages, ", "), r.stage)
		r.write(&b)
	}
	if r.failure != "" {
		fmt.Fprintf(&b, "**Failed**: %s\n", r.failure)
	}
	return b.String()
}

func (r *replayStage) write(b *strings.Builder) {
	if len(r.in.Set) > 0 {
		fmt.Fprintf(b, "Changed: `%s`\n\n", strings.Join(r.in.Set, "`, `"))
	}
	if r.result.Gen > 0 {
		fmt.Fprintf(b, "Generation %d; the step's head stays where it is.\n\n", r.result.Gen)
	}
	if len(r.result.Stages) == 0 {
		return
	}
	b.WriteString("| stage | shards | before | after | |\n|:--|--:|:--|:--|:--|\n")
	for _, s := range r.result.Stages {
		fmt.Fprintf(b, "| %s | %d | `%s` | `%s` | %s |\n", s.Stage, s.Shards, short(s.Old), short(s.New), outcome(s))
	}
	fmt.Fprintf(b, "\nWhat changed: `ropewalk diff %s --step %d --gen 0,%d`\n", r.in.Run, r.in.Step, r.result.Gen)
}

func outcome(s wire.StageComparison) string {
	switch {
	case s.Same:
		return "same"
	case s.Old == "":
		return "made for the first time"
	}
	return fmt.Sprintf("%d of %d shards changed", s.Differs, s.Shards)
}
