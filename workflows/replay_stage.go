package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// ReplayStageResult is the result of a replay or a check.
type ReplayStageResult struct {
	Run  string `json:"run_id"`
	Step int    `json:"step,omitempty"`
	// Gen is the generation that the replay has committed next to the step's own.
	Gen    int                   `json:"gen,omitempty"`
	Stages []api.StageComparison `json:"stages,omitempty"`
	Check  *CheckState           `json:"check,omitempty"`
	// Update is the counterfactual policy, if the replay has trained one.
	Update *Counterfactual `json:"update,omitempty"`
	// Impure says why the replay does not follow from the record alone: it has called the user's function, and that
	// has changed or does not repeat its answers.
	Impure string `json:"impure,omitempty"`
}

// replayStage is ReplayStage's state.
type replayStage struct {
	in       ReplayStageInput
	stages   []string
	prepared api.ReplayPrepared
	at       position
	replayed step.Replayed
	result   ReplayStageResult
	failure  string
}

// ReplayStage runs stages of a step again (reward, resample, advantage, buffer) from committed inputs, possibly with
// other settings, under a generation of its own. It moves no head. It needs only the record: no engine, no environment
// and no history of the run. Through update it also trains a counterfactual policy, for which it needs the engine, and
// compares it with the run's own.
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
	r := &replayStage{in: in, stages: stages,
		result: ReplayStageResult{Run: in.Run, Step: in.Step}}
	r.at.shown = func(ctx workflow.Context, _ string) { workflow.SetCurrentDetails(ctx, r.markdown()) }
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
	r.at.enter(ctx, schema.StageReplay)
	var err error
	info := workflow.GetInfo(ctx)
	r.prepared, err = call[api.ReplayPrepared](ctx, nil, api.PrepareReplay, "claim a generation", api.ReplayInput{
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
	scope := api.Scope{Run: r.in.Run, Step: r.in.Step, Gen: r.prepared.Gen, Config: r.prepared.Manifest}
	plan := api.Plan{}
	if u := r.prepared.Update; u != nil {
		plan.Hosts = u.Hosts
	}
	run := newRunner(ctx, &r.at, scope, plan, "", nil)
	if err := step.Replay(run, scope, r.prepared, r.stages, &r.replayed); err != nil {
		return err
	}
	if r.replayed.Updated != nil && !r.in.NoEvaluation {
		if err := step.Measure(run, scope, r.prepared.Update, &r.replayed); err != nil {
			return err
		}
	}
	return r.compare(ctx, scope)
}

// impure says why the answers of a function that was called again do not follow from the record; "" if they do.
func (r *replayStage) impure(function api.StageComparison) string {
	switch {
	case function.Old == "":
		return "the step has no answers of this function that could be compared"
	case r.replayed.Edited != "":
		return "the function's code was edited since the run began: " + r.replayed.Edited
	case !function.Same:
		return "the function gives other answers than it gave in the step"
	}
	return ""
}

// compare finds out which stages have the same bytes as before.
func (r *replayStage) compare(ctx workflow.Context, scope api.Scope) error {
	r.at.enter(ctx, stages.Compare)
	in := api.CompareInput{Scope: scope}
	for _, made := range r.replayed.Made {
		in.Stages = append(in.Stages, api.StagePair{Stage: made.Stage, Old: r.prepared.Before.One(made.Stage),
			New: made.Ref})
	}
	out, err := call[api.Compared](ctx, nil, api.CompareReplay, "digests before and after", in)
	if err != nil {
		return err
	}
	r.result.Stages = out.Stages
	r.result.Update = counterfactual(r.prepared.Update, r.replayed)
	if r.replayed.Made[0].Stage == schema.StageFunction {
		r.result.Impure = r.impure(out.Stages[0])
	}
	r.at.enter(ctx, "done")
	return nil
}

// fail reports what failed and in which stage.
func (r *replayStage) fail(ctx workflow.Context, cause error) error {
	if temporal.IsCanceledError(cause) {
		return cause
	}
	kind, text := failure(cause)
	if kind != api.FailBadInput {
		text = r.at.stage + ": " + text
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
		fmt.Fprintf(&b, "**%s** · check of the pure stages · %s\n\n", r.in.Run, r.at.stage)
		r.result.Check.write(&b)
	} else {
		fmt.Fprintf(&b, "**%s** · step %d · replay of %s · %s\n\n", r.in.Run, r.in.Step, strings.Join(r.stages, ", "),
			r.at.stage)
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
	if u := r.result.Update; u != nil {
		fmt.Fprintf(b, "\n- %s\n", strings.Join(u.Lines(), "\n- "))
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
