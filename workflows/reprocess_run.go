package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/schema"
)

// importStep is the step whose stages an import fills: it has one pass only.
const importStep = 1

// ReprocessResult reports an import.
type ReprocessResult struct {
	Run          string  `json:"run_id"`
	Format       string  `json:"format"`
	Trajectories int     `json:"trajectories"`
	ToolCalls    int     `json:"tool_calls"`
	Rewarded     int     `json:"rewarded"` // trajectories with a positive reward
	Kept         int     `json:"kept"`
	BatchRows    int     `json:"batch_rows"`
	Reward       float64 `json:"reward"` // mean over the trajectories that have one
	// Excluded counts those that have none, because something broke on them.
	Excluded int `json:"excluded,omitempty"`
	// Agreement of our reward with the source's verdict, and of our calculator with its annotations.
	RewardCompared     int `json:"reward_compared"`
	RewardAgreed       int `json:"reward_agreed"`
	CalculatorCompared int `json:"calculator_compared"`
	CalculatorAgreed   int `json:"calculator_agreed"`
}

// reprocess is ReprocessRun's state.
type reprocess struct {
	trainStep
	result ReprocessResult
}

// ReprocessRun turns imported solutions into trajectories, really runs their calculations (calls in
// OpenAI's format hold their results and are recorded only), and takes them through reward →
// resample → advantage. There is no policy, so there is no update.
func ReprocessRun(ctx workflow.Context, in ReprocessInput) (ReprocessResult, error) {
	if err := in.validate(); err != nil {
		return ReprocessResult{}, refuse(ctx, err)
	}
	run := in.Run
	if run == "" {
		run = workflow.GetInfo(ctx).WorkflowExecution.ID
	}
	if err := checkRun(run); err != nil {
		return ReprocessResult{}, refuse(ctx, err)
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, attrRunID.ValueSet(run)); err != nil {
		return ReprocessResult{}, fmt.Errorf("set search attribute RunID: %w", err)
	}
	var p parking
	progress := func() (Progress, error) {
		return Progress{Run: run, Recipe: in.Recipe + in.RecipeFile, Step: importStep, Steps: importStep, Parked: p.parked}, nil
	}
	if err := workflow.SetQueryHandler(ctx, QueryProgress, progress); err != nil {
		return ReprocessResult{}, fmt.Errorf("register query %s: %w", QueryProgress, err)
	}
	if err := p.register(ctx); err != nil {
		return ReprocessResult{}, err
	}
	timeouts := map[string]float64{}
	for {
		r := &reprocess{result: ReprocessResult{Run: run, Format: in.Format}}
		r.in.Run, r.in.Step = run, importStep
		err := r.execute(withTimeouts(ctx, timeouts), in)
		if err == nil || temporal.IsCanceledError(err) {
			return r.result, err
		}
		if timeouts, err = r.park(ctx, &p, err); err != nil {
			return r.result, err
		}
	}
}

// park waits for a person; it returns the time limits of the next attempt, which adopts what is
// committed, or the failure when there is to be none.
func (r *reprocess) park(ctx workflow.Context, p *parking, cause error) (map[string]float64, error) {
	all := failures(cause, r.stage)
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrFailureKind.ValueSet(all[0].Kind))
	if all[0].Kind == wire.FailBadInput {
		return nil, temporal.NewNonRetryableApplicationError(r.stage+": "+all[0].Text, all[0].Kind, nil)
	}
	what := Parked{Step: importStep, Kind: all[0].Kind, Failures: all, NoSkip: "an import holds every solution once, nothing can stand in for it"}
	chosen, err := p.hold(ctx, what, func() { workflow.SetCurrentDetails(ctx, what.markdown(r.in.Run)) })
	if err != nil {
		return nil, err
	}
	if chosen.action == UpdateAbort {
		return nil, aborted(all)
	}
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrFailureKind.ValueUnset())
	timeouts := map[string]float64{}
	if chosen.retry.TimeoutSeconds > 0 {
		for _, f := range all {
			timeouts[f.Activity] = chosen.retry.TimeoutSeconds
		}
	}
	return timeouts, nil
}

func (r *reprocess) execute(ctx workflow.Context, in ReprocessInput) error {
	r.enter(ctx, wire.StagePrepare)
	var err error
	r.in.Prepared, err = call[wire.Prepared](ctx, wire.PrepareRun, "resolve and commit the recipe", wire.PrepareInput{
		Run: r.result.Run, Kind: "reprocess", Format: in.Format, Recipe: in.Recipe, RecipeYAML: in.RecipeYAML, RecipeFile: in.RecipeFile, Overrides: in.Set,
	})
	if err != nil {
		return err
	}
	r.scope = scoped(r.result.Run, importStep, r.in.Prepared)
	r.enter(ctx, wire.StageImport)
	imported, err := call[wire.Imported](ctx, wire.ImportTrajectories, in.Format, wire.ImportInput{
		Scope: r.scope, Format: in.Format, Source: in.Source, Digest: in.Digest,
	})
	if err != nil {
		return err
	}
	r.finish(wire.StageImport, imported.Manifest, imported.Timing)
	r.enter(ctx, wire.StageSandbox)
	lanes, err := r.lanes(ctx, imported)
	if err != nil {
		return err
	}
	rewards, turns, err := r.commitLanes(ctx, lanes)
	if err != nil {
		return err
	}
	if in.Format == wire.FormatGSM8K {
		if err := r.compare(ctx, in, lanes); err != nil {
			return err
		}
	}
	r.result.Trajectories, r.result.ToolCalls = imported.Trajectories, imported.Calls
	return r.process(ctx, rewards, turns)
}

// lanes runs, assembles and scores every imported shard.
func (r *reprocess) lanes(ctx workflow.Context, imported wire.Imported) ([]lane, error) {
	lanes := make([]lane, len(imported.Shards))
	failures := make([]error, len(lanes))
	group := workflow.NewWaitGroup(ctx)
	for i, shard := range imported.Shards {
		lanes[i] = lane{shard: i, turns: []schema.Ref{shard.Manifest}, grade: r.in.Prepared.Plan.Grade}
		group.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer group.Done()
			if failures[i] = lanes[i].execute(ctx, r.scope, shard.Manifest, 0, shard.Calls); failures[i] == nil {
				failures[i] = lanes[i].score(ctx, r.scope, shard.Manifest)
			}
		})
	}
	group.Wait(ctx)
	for i := range lanes {
		r.times.add(lanes[i].timings...)
		r.result.RewardCompared += lanes[i].scored.Compared
		r.result.RewardAgreed += lanes[i].scored.Agreed
		r.result.Rewarded += lanes[i].scored.Successes
		r.result.Reward += lanes[i].scored.RewardSum
		r.result.Excluded += lanes[i].scored.Excluded
	}
	return lanes, errors.Join(failures...)
}

// compare holds our calculator's results against what the source's annotations say.
func (r *reprocess) compare(ctx workflow.Context, in ReprocessInput, lanes []lane) error {
	r.enter(ctx, wire.StageCompare)
	input := wire.AgreementInput{Scope: r.scope, Source: in.Source, Digest: in.Digest}
	for _, l := range lanes {
		input.Tools = append(input.Tools, l.tools...)
	}
	agreement, err := call[wire.Agreement](ctx, wire.CompareCalculator, "calculator against annotations", input)
	if err != nil {
		return err
	}
	r.times.add(agreement.Timing)
	r.result.CalculatorCompared, r.result.CalculatorAgreed = agreement.Compared, agreement.Agreed
	return nil
}

// process takes the scored rows through resample and advantage and commits the step's head.
func (r *reprocess) process(ctx workflow.Context, rewards schema.Ref, turns []schema.Ref) error {
	if n := r.result.Trajectories - r.result.Excluded; n > 0 {
		r.result.Reward /= float64(n)
	}
	r.enter(ctx, wire.StageResample)
	selection, err := call[wire.Resampled](ctx, wire.Resample, r.in.Prepared.Plan.Chain, wire.ResampleInput{Scope: r.scope, Rewards: rewards})
	if err != nil {
		return err
	}
	r.finish(wire.StageResample, selection.Manifest, selection.Timing)
	r.enter(ctx, wire.StageAdvantage)
	batch, err := call[wire.Advantages](ctx, wire.ComputeAdvantages, "the training batch", wire.AdvantageInput{
		Scope: r.scope, Turns: turns, Rewards: rewards, Selection: selection.Manifest,
	})
	if err != nil {
		return err
	}
	r.finish(wire.StageAdvantage, batch.Manifest, batch.Timing)
	r.result.Kept, r.result.BatchRows = selection.Kept, batch.Rows
	r.enter(ctx, wire.StageCommit)
	head, err := call[wire.Committed](ctx, wire.CommitStages, "the head", wire.CommitInput{Scope: r.scope, Head: r.stages})
	if err != nil {
		return err
	}
	r.times.add(head.Timing)
	_, err = call[wire.Done](ctx, wire.RecordTimings, "measured times", wire.RecordTimingsInput{Scope: r.scope, Timings: r.times.all, Part: "step"})
	return err
}
