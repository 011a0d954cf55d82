package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// ReplayStageResult is the result of a replay or a check.
type ReplayStageResult struct {
	Run  string `json:"run_id"`
	Step int    `json:"step,omitempty"`
	// Gen is the generation that the replay has committed next to the step's own.
	Gen    int                   `json:"gen,omitempty"`
	Stages []api.StageComparison `json:"stages,omitempty"`
	Check  *CheckState           `json:"check,omitempty"`
	// Impure says why the replay does not follow from the record alone: it has called the user's function, and that
	// has changed or does not repeat its answers.
	Impure string `json:"impure,omitempty"`
}

// replayStage is ReplayStage's state.
type replayStage struct {
	in       ReplayStageInput
	stages   []string
	prepared api.ReplayPrepared
	scope    api.Scope
	sources  sources
	made     map[string]schema.Ref // stage manifests that the replay made
	result   ReplayStageResult
	stage    string
	failure  string
	edited   string // files of the user's function that were edited since the run began
}

// ReplayStage runs pure stages of a step again (reward, resample, advantage, buffer) from committed inputs, possibly
// with other settings, under a generation of its own. It moves no head. It needs only the record: no engine, no
// environment and no history of the run.
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
	r := &replayStage{in: in, stages: stages, made: map[string]schema.Ref{},
		result: ReplayStageResult{Run: in.Run, Step: in.Step}}
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
	r.enter(ctx, api.StageReplay)
	var err error
	info := workflow.GetInfo(ctx)
	r.prepared, err = call[api.ReplayPrepared](ctx, api.PrepareReplay, "claim a generation", api.ReplayInput{
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
	r.scope = api.Scope{Run: r.in.Run, Step: r.in.Step, Gen: r.prepared.Gen, Config: r.prepared.Manifest}
	r.sources = sources{
		scope: r.scope, chain: r.prepared.Chain, prompts: r.prepared.Prompts, excluded: r.prepared.Excluded,
		turns: r.prepared.Turns, rewards: r.prepared.Rewards, selection: r.prepared.Selection,
		outputs: r.prepared.Outputs,
		batch:   r.prepared.Batch, before: r.prepared.Buffer,
	}
	for _, stage := range r.stages { // run may put a stage before them
		r.enter(ctx, stage)
		if err := r.run(ctx, stage); err != nil {
			return err
		}
	}
	return r.compare(ctx)
}

// run makes one stage, from the stages replayed before it or else from what the step has committed.
func (r *replayStage) run(ctx workflow.Context, stage string) (err error) {
	if stage == api.StageReward {
		if r.prepared.Problems != (schema.Ref{}) {
			if err := r.function(ctx); err != nil {
				return err
			}
		}
		r.made[stage], err = r.reward(ctx)
		r.sources.rewards = r.made[stage]
		return err
	}
	r.made[stage], err = r.sources.again(ctx, stage)
	return err
}

// function calls the user's function with the trajectories of every shard and commits the stage.
func (r *replayStage) function(ctx workflow.Context) (err error) {
	all := r.prepared.Trajectories
	parts, called := make([]schema.Ref, len(all)), make([]api.ShardRef, len(all))
	err = sideBySideOf(ctx, len(all), func(ctx workflow.Context, i int) error {
		out, err := call[api.Called](ctx, api.CallFunction, fmt.Sprintf("shard %d", all[i].Shard), api.FunctionInput{
			Scope: r.scope, Shard: all[i].Shard, Trajectories: all[i].Ref, Prompts: r.prepared.Problems,
		})
		parts[i], called[i] = out.Manifest, api.ShardRef{Shard: all[i].Shard, Ref: out.Manifest}
		if out.Edited != "" {
			r.edited = out.Edited
		}
		return err
	})
	if err != nil {
		return err
	}
	r.prepared.Results = called
	r.made[api.StageFunction], _, err = commitStage(ctx, r.scope, api.StageFunction, parts)
	r.stages = append([]string{api.StageFunction}, r.stages...)
	return err
}

// impure says why the answers of a function that was called again do not follow from the record; "" if they do.
func (r *replayStage) impure(function api.StageComparison) string {
	switch {
	case function.Old == "":
		return "the step has no answers of this function that could be compared"
	case r.edited != "":
		return "the function's code was edited since the run began: " + r.edited
	case !function.Same:
		return "the function gives other answers than it gave in the step"
	}
	return ""
}

// reward scores every shard and commits the stage.
func (r *replayStage) reward(ctx workflow.Context) (schema.Ref, error) {
	gradings, judgements := byShard(r.prepared.Gradings), byShard(r.prepared.Judgements)
	results := byShard(r.prepared.Results)
	parts := make([]schema.Ref, len(r.prepared.Trajectories))
	err := sideBySideOf(ctx, len(parts), func(ctx workflow.Context, i int) error {
		shard := r.prepared.Trajectories[i]
		out, err := call[api.Scored](ctx, api.ScoreRewards, fmt.Sprintf("shard %d", shard.Shard), api.ScoreInput{
			Scope: r.scope, Shard: shard.Shard, Trajectories: shard.Ref, Gradings: gradings[shard.Shard],
			Judgements: judgements[shard.Shard], Results: results[shard.Shard],
		})
		parts[i] = out.Manifest
		return err
	})
	if err != nil {
		return schema.Ref{}, err
	}
	ref, _, err := commitStage(ctx, r.scope, api.StageReward, parts)
	return ref, err
}

// byShard returns manifests by their shard.
func byShard(refs []api.ShardRef) map[int]schema.Ref {
	out := map[int]schema.Ref{}
	for _, r := range refs {
		out[r.Shard] = r.Ref
	}
	return out
}

// compare finds out which stages have the same bytes as before.
func (r *replayStage) compare(ctx workflow.Context) error {
	r.enter(ctx, api.StageCompare)
	before := map[string]schema.Ref{}
	for _, b := range r.prepared.Before {
		before[b.Stage] = b.Ref
	}
	in := api.CompareInput{Scope: r.scope}
	for _, stage := range r.stages {
		in.Stages = append(in.Stages, api.StagePair{Stage: stage, Old: before[stage], New: r.made[stage]})
	}
	out, err := call[api.Compared](ctx, api.CompareReplay, "digests before and after", in)
	if err != nil {
		return err
	}
	r.result.Stages = out.Stages
	if r.stages[0] == api.StageFunction {
		r.result.Impure = r.impure(out.Stages[0])
	}
	r.enter(ctx, "done")
	return nil
}

// enter shows the current stage in the UI's details and in the search attributes.
func (r *replayStage) enter(ctx workflow.Context, stage string) {
	r.stage = stage
	workflow.SetCurrentDetails(ctx, r.markdown())
	// Upserting fails only for keys that cannot be encoded; these are constants.
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrStage.ValueSet(stage))
}

// fail reports what failed and in which stage.
func (r *replayStage) fail(ctx workflow.Context, cause error) error {
	if temporal.IsCanceledError(cause) {
		return cause
	}
	kind, text := failure(cause)
	if kind != api.FailBadInput {
		text = r.stage + ": " + text
	}
	r.failure = text
	workflow.SetCurrentDetails(ctx, r.markdown())
	setFailureKind(ctx, kind)
	return temporal.NewNonRetryableApplicationError(text, kind, nil)
}

// markdown renders the state for Temporal's UI.
func (r *replayStage) markdown() string {
	var b strings.Builder
	if r.in.Check {
		fmt.Fprintf(&b, "**%s** · check of the pure stages · %s\n\n", r.in.Run, r.stage)
		r.result.Check.write(&b)
	} else {
		fmt.Fprintf(&b, "**%s** · step %d · replay of %s · %s\n\n", r.in.Run, r.in.Step, strings.Join(r.stages, ", "),
			r.stage)
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
	if r.result.Impure != "" {
		fmt.Fprintf(b, "\n**Not pure**: %s.\n", r.result.Impure)
	}
	fmt.Fprintf(b, "\nWhat changed: `ropewalk diff %s --step %d --gen 0,%d`\n", r.in.Run, r.in.Step, r.result.Gen)
}

func outcome(s api.StageComparison) string {
	switch {
	case s.Same:
		return "same"
	case s.Old == "":
		return "made for the first time"
	}
	return fmt.Sprintf("%d of %d shards changed", s.Differs, s.Shards)
}
