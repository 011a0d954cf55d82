package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// RolloutShard takes one shard of a step from prompts to rewards. It is a workflow of its own, so that the step's
// history does not grow with the number of turns.
func RolloutShard(ctx workflow.Context, in api.EpisodesInput) (out api.Episodes, err error) {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**%s** · step %d · shard %d", in.Run, in.Step, in.Shard))
	r := newRunner(ctx, &position{}, in.Scope, api.Plan{Hosts: in.Hosts, Summaries: in.Summaries}, in.Home,
		in.Timeouts)
	r.quiet, r.home.fixed = true, true
	err = step.Shard.Body(r, &in, &out)
	switch {
	case err == nil:
		out.Timings = r.Spent()
		return out, nil
	case temporal.IsCanceledError(err):
		return api.Episodes{}, err
	case in.Hosts > 1 && left(err):
		return api.Episodes{}, temporal.NewNonRetryableApplicationError("host "+in.Home+" has not taken the shard",
			api.FailElsewhere, nil)
	}
	all := failures(err, schema.StageRollout)
	// Upserting fails only for keys that cannot be encoded; these are constants.
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrFailureKind.ValueSet(all[0].Kind),
		attrStage.ValueSet(all[0].Stage))
	return api.Episodes{}, stepFailed(all)
}

func shardOptions(ctx workflow.Context, in api.EpisodesInput) workflow.Context {
	return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:    ShardWorkflowID(in.Run, in.Step, in.Shard),
		StaticSummary: fmt.Sprintf("shard %d of step %d of %s", in.Shard, in.Step, in.Run),
		TypedSearchAttributes: temporal.NewSearchAttributes(attrRunID.ValueSet(in.Run),
			attrStep.ValueSet(int64(in.Step)), attrStage.ValueSet(schema.StageRollout)),
	})
}

// tooManyTimings is how many measured times a step carries itself. If its shards may have more, each shard records
// its own.
const tooManyTimings = 1000

// shardsRecord reports whether the shards of a step record their own measured times.
func shardsRecord(plan api.Plan) bool {
	rounds := 1
	if plan.Dynamic != nil {
		rounds = plan.Dynamic.Tries
	}
	return rounds*plan.Shards*(2*plan.MaxTurns+3) > tooManyTimings
}
