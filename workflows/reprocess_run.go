package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// importStep is the step that an import fills: an import is a single pass.
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
	Reward       float64 `json:"reward"` // mean over the trajectories that have a reward
	// Excluded counts the trajectories without a reward, because something broke on them.
	Excluded int `json:"excluded,omitempty"`
}

// reprocess is ReprocessRun's state.
type reprocess struct {
	in      ReprocessInput
	at      position
	parking parking
	states  states
}

// ReprocessRun turns imported conversations into trajectories and takes them through reward → resample → advantage.
// Their calls already hold their results, so they are recorded and not executed. There is no policy and therefore no
// update.
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
	r := &reprocess{in: in, at: position{run: run, step: importStep}, states: states{run: run}}
	r.states.began(ctx, workflow.GetInfo(ctx).WorkflowStartTime.UTC())
	progress := func() (Progress, error) {
		return Progress{Run: run, Recipe: in.Recipe + in.RecipeFile, Step: importStep, Steps: importStep,
			Parked: r.parking.parked}, nil
	}
	if err := workflow.SetQueryHandler(ctx, QueryProgress, progress); err != nil {
		return ReprocessResult{}, fmt.Errorf("register query %s: %w", QueryProgress, err)
	}
	if err := r.parking.register(ctx); err != nil {
		return ReprocessResult{}, err
	}
	return r.execute(ctx)
}

// execute imports until an attempt succeeds. An attempt that fails parks the workflow until a person decides; the next
// attempt adopts committed work.
func (r *reprocess) execute(ctx workflow.Context) (ReprocessResult, error) {
	timeouts := map[string]float64{}
	for {
		result, err := r.attempt(withTimeouts(ctx, timeouts))
		if err == nil {
			r.states.settle(ctx)
			r.states.show(ctx, schema.StateDone)
		}
		if err == nil || temporal.IsCanceledError(err) {
			return result, err
		}
		all := failures(err, r.at.stage)
		chosen, err := r.park(ctx, all)
		if err != nil {
			return result, err
		}
		timeouts = chosen.timeouts(timeouts, all)
	}
}

// park waits for a person. It returns the failure if there is to be no other attempt.
func (r *reprocess) park(ctx workflow.Context, all []StageFailure) (decision, error) {
	setFailureKind(ctx, all[0].Kind)
	if all[0].Kind == api.FailBadInput {
		if r.at.stage == api.StagePrepare { // there may be no run to note anything of
			r.states.show(ctx, schema.StateFailed)
		} else {
			r.states.leave(ctx, schema.StateFailed, all[0].Kind, reasonOf(all))
		}
		return decision{}, temporal.NewNonRetryableApplicationError(r.at.stage+": "+all[0].Text, all[0].Kind, nil)
	}
	what := Parked{Step: importStep, Kind: all[0].Kind, Failures: all,
		NoSkip: "an import holds every conversation once, nothing can stand in for it"}
	r.states.enter(ctx, schema.StateParked, what.Kind, reasonOf(all))
	chosen, err := r.parking.hold(ctx, what, func() { workflow.SetCurrentDetails(ctx, what.markdown(r.at.run)) })
	if err != nil {
		return chosen, err
	}
	if chosen.action == UpdateAbort {
		r.states.leave(ctx, schema.StateFailed, all[0].Kind, reasonOf(all))
		return chosen, aborted(all)
	}
	unsetFailureKind(ctx)
	r.states.enter(ctx, schema.StateRunning, "", "")
	return chosen, nil
}

// attempt takes the imported trajectories through their stages once.
func (r *reprocess) attempt(ctx workflow.Context) (ReprocessResult, error) {
	r.at.enter(ctx, api.StagePrepare)
	prepared, err := call[api.Prepared](ctx, api.PrepareRun, "resolve and commit the recipe", api.PrepareInput{
		Run: r.at.run, Kind: "reprocess", Format: r.in.Format, Recipe: r.in.Recipe, RecipeYAML: r.in.RecipeYAML,
		RecipeFile: r.in.RecipeFile, Overrides: r.in.Set,
	})
	if err != nil {
		return ReprocessResult{Run: r.at.run, Format: r.in.Format}, err
	}
	p := &importPass{pass: newPass(&r.at, prepared), in: r.in,
		result: ReprocessResult{Run: r.at.run, Format: r.in.Format}}
	err = p.execute(ctx)
	return p.result, err
}

// importPass is one attempt of an import, under its prepared recipe.
type importPass struct {
	pass
	in     ReprocessInput
	result ReprocessResult
}

func (p *importPass) execute(ctx workflow.Context) error {
	p.enter(ctx, api.StageImport)
	imported, err := call[api.Imported](ctx, api.ImportTrajectories, p.in.Format, api.ImportInput{
		Scope: p.scope, Format: p.in.Format, Source: p.in.Source, Digest: p.in.Digest,
	})
	if err != nil {
		return err
	}
	p.finish(api.StageImport, imported.Manifest, imported.Timing)
	p.enter(ctx, api.StageSandbox)
	shards, err := p.score(ctx, imported)
	if err != nil {
		return err
	}
	committed, err := p.commitShards(ctx, api.CommitInput{Scope: p.scope, Stages: stageParts(shards)})
	if err != nil {
		return err
	}
	p.result.Trajectories, p.result.ToolCalls = imported.Trajectories, imported.Calls
	return p.process(ctx, committed)
}

// score records the calls of every imported shard, assembles its trajectories and scores them, in the import's own
// history.
func (p *importPass) score(ctx workflow.Context, imported api.Imported) ([]shardRollout, error) {
	shards := make([]shardRollout, len(imported.Shards))
	failures := make([]error, len(shards))
	group := workflow.NewWaitGroup(ctx)
	for i, shard := range imported.Shards {
		shards[i] = shardRollout{shard: i, last: shard.Manifest, turns: []schema.Ref{shard.Manifest},
			grade: p.plan.Grade, judge: p.plan.Judge, function: p.plan.Function}
		group.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer group.Done()
			if failures[i] = shards[i].execute(ctx, nil, p.scope, shard.Manifest, 0, shard.Calls); failures[i] == nil {
				failures[i] = shards[i].score(ctx, p.scope, shard.Manifest)
			}
		})
	}
	group.Wait(ctx)
	for i := range shards {
		p.times.add(shards[i].timings...)
		p.result.Rewarded += shards[i].scored.Successes
		p.result.Reward += shards[i].scored.RewardSum
		p.result.Excluded += shards[i].scored.Excluded
	}
	return shards, errors.Join(failures...)
}

// process takes the scored rows through resample and advantage and commits the step's head.
func (p *importPass) process(ctx workflow.Context, committed api.Rollout) error {
	if n := p.result.Trajectories - p.result.Excluded; n > 0 {
		p.result.Reward /= float64(n)
	}
	made := sources{scope: p.scope, chain: p.plan.Chain, turns: committed.Turns, rewards: committed.Rewards}
	selection, err := p.resample(ctx, &made)
	if err != nil {
		return err
	}
	batch, err := p.advantage(ctx, &made)
	if err != nil {
		return err
	}
	p.result.Kept, p.result.BatchRows = selection.Kept, batch.Rows
	p.enter(ctx, api.StageCommit)
	head, err := call[api.Committed](ctx, api.CommitStages, "the head",
		api.CommitInput{Scope: p.scope, Head: p.stages})
	if err != nil {
		return err
	}
	p.times.add(head.Timing)
	_, err = call[api.Done](ctx, api.RecordTimings, "measured times",
		api.RecordTimingsInput{Scope: p.scope, Timings: p.times.all, Part: "step"})
	return err
}
