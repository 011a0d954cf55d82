package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
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
	shell
	in     ReprocessInput
	result ReprocessResult
}

// ReprocessRun turns imported conversations into trajectories and takes them through reward → resample → advantage.
// Their calls already hold their results, so they are recorded and not executed. There is no policy and therefore no
// update.
func ReprocessRun(ctx workflow.Context, in ReprocessInput) (ReprocessResult, error) {
	if err := in.validate(); err != nil {
		return ReprocessResult{}, refuse(ctx, err)
	}
	r := &reprocess{in: in, shell: shell{at: position{step: importStep}, progress: Progress{Steps: importStep},
		noSkip: "an import holds every conversation once, nothing can stand in for it"}}
	if err := r.open(ctx, in.Run, in.Recipe+in.RecipeFile); err != nil {
		return ReprocessResult{}, err
	}
	err := r.attempts(ctx, r.attempt)
	return r.result, err
}

// attempt takes the imported trajectories through their stages once.
func (r *reprocess) attempt(ctx workflow.Context) error {
	r.result = ReprocessResult{Run: r.at.run, Format: r.in.Format}
	r.at.enter(ctx, schema.StagePrepare)
	prepared, err := call[api.Prepared](ctx, r.limits, api.PrepareRun, "resolve and commit the recipe",
		api.PrepareInput{Run: r.at.run, Kind: "reprocess", Format: r.in.Format, Recipe: r.in.Recipe,
			RecipeYAML: r.in.RecipeYAML, RecipeFile: r.in.RecipeFile, Overrides: r.in.Set})
	if err != nil {
		return err
	}
	plan := prepared.Plan
	plan.Interleaved = false // each stage is an activity
	run := newRunner(ctx, &r.at, scoped(r.at.run, importStep, prepared), plan, "", r.limits)
	var imported api.Imported
	err = run.Run(step.Call{At: step.Whole(schema.StageImport), Activity: api.ImportTrajectories, Note: r.in.Format,
		In: api.ImportInput{Scope: run.scope, Format: r.in.Format, Source: r.in.Source, Digest: r.in.Digest}},
		&imported)
	if err != nil {
		return err
	}
	r.at.enter(ctx, schema.StageSandbox)
	run.quiet = true // the shards are at different stages
	shards, err := step.Import(run, api.EpisodesInput{Scope: run.scope, Needs: plan.Needs}, imported.Shards)
	if run.quiet = false; err != nil {
		return err
	}
	r.count(imported, shards)
	return r.process(run, imported, shards)
}

// count sums the shards.
func (r *reprocess) count(imported api.Imported, shards []api.Episodes) {
	r.result.Trajectories, r.result.ToolCalls = imported.Trajectories, imported.Calls
	for _, s := range shards {
		r.result.Rewarded += s.Scored.Successes
		r.result.Reward += s.Scored.RewardSum
		r.result.Excluded += s.Scored.Excluded
	}
	if n := r.result.Trajectories - r.result.Excluded; n > 0 {
		r.result.Reward /= float64(n)
	}
}

// process takes the scored rows through resample and advantage and commits the step's head.
func (r *reprocess) process(run *runner, imported api.Imported, shards []api.Episodes) error {
	ask := &api.BatchInput{Scope: run.scope, Stages: []string{stages.Commit, schema.StageResample,
		schema.StageAdvantage},
		Commit: &api.CommitInput{Scope: run.scope}, Chain: run.plan.Chain}
	for _, s := range shards {
		ask.Commit.Rewards = append(ask.Commit.Rewards, s.Scored.Manifest)
	}
	var made api.Batch
	if err := step.Batch.Body(run, ask, &made); err != nil {
		return err
	}
	r.result.Kept, r.result.BatchRows = made.Resampled.Kept, made.Batch.Rows
	head := append(api.Made{{Stage: schema.StageImport, Ref: imported.Manifest}}, made.Made...)
	err := run.Run(step.Call{At: step.Whole(stages.Commit), Activity: api.CommitStages, Note: "the head",
		In: api.CommitInput{Scope: run.scope, Head: head}}, &api.Committed{})
	if err != nil {
		return err
	}
	_, err = call[api.Done](run.ctx, r.limits, api.RecordTimings, "measured times",
		api.RecordTimingsInput{Scope: run.scope, Timings: run.times.all, Part: "step"})
	return err
}
