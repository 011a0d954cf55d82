package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// RolloutShardInput asks for one shard of a step, from its prompts to its rewards.
type RolloutShardInput struct {
	api.Scope
	Shard    int           `json:"shard"`
	Prompts  schema.Ref    `json:"prompts"`
	Policy   api.PolicyRef `json:"policy"`
	MaxTurns int           `json:"max_turns"`
	Grade    bool          `json:"grade,omitempty"`
	Judge    bool          `json:"judge,omitempty"`
	Function bool          `json:"function,omitempty"`
	// Summaries says that tool calls use the run's models.
	Summaries bool `json:"summaries,omitempty"`
	// Hosts is how many hosts share the run's models, if there are several, and Home is the host that leads them.
	Hosts int    `json:"hosts,omitempty"`
	Home  string `json:"home,omitempty"`
	// Record makes the shard record its own measured times, because the times of all shards would exceed the step's
	// payload limits.
	Record bool `json:"record,omitempty"`
	// Timeouts are time limits of activities in seconds, where a person set others.
	Timeouts map[string]float64 `json:"timeouts,omitempty"`
}

// RolloutShardResult is what the step continues with. It names only the last manifests, which lead to all others.
type RolloutShardResult struct {
	Assembled schema.Ref `json:"assembled"`
	Scored    api.Scored `json:"scored"`
	// Timings are the measured times that the step records.
	Timings []api.Timing `json:"timings,omitempty"`
	// Busy is when the activities ran whose times the shard has recorded itself.
	Busy api.Busy `json:"busy,omitempty"`
}

// RolloutShard takes one shard of a step from prompts to rewards. It alternates *generate turn* and *execute tool
// calls*, then assembles, gets the verdicts that the recipe asks for, and scores. It is a workflow of its own, so that
// the step's history does not grow with the number of turns.
func RolloutShard(ctx workflow.Context, in RolloutShardInput) (RolloutShardResult, error) {
	r := shardRollout{shard: in.Shard, grade: in.Grade, judge: in.Judge, function: in.Function, models: in.Summaries,
		record: in.Record}
	h := &home{host: in.Home, hosts: in.Hosts, fixed: true}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**%s** · step %d · shard %d", in.Run, in.Step, in.Shard))
	err := r.run(withTimeouts(ctx, in.Timeouts), h, in.Scope, in.Prompts, in.Policy, in.MaxTurns)
	switch {
	case err == nil:
		return RolloutShardResult{Assembled: r.assembled, Scored: r.scored, Timings: r.timings, Busy: r.busy}, nil
	case temporal.IsCanceledError(err):
		return RolloutShardResult{}, err
	case in.Hosts > 1 && left(err):
		return RolloutShardResult{},
			temporal.NewNonRetryableApplicationError("host "+in.Home+" has not taken the shard", api.FailElsewhere,
				nil)
	}
	all := failures(err, api.StageRollout)
	// Upserting fails only for keys that cannot be encoded; these are constants.
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrFailureKind.ValueSet(all[0].Kind),
		attrStage.ValueSet(all[0].Stage))
	return RolloutShardResult{}, stepFailed(all)
}

// shardWorkflow runs one shard of a round as a child workflow.
func (s *trainStep) shardWorkflow(ctx workflow.Context, r *shardRollout, prompts schema.Ref, record bool) error {
	in := RolloutShardInput{
		Scope: s.scope, Shard: r.shard, Prompts: prompts, Policy: s.sampling(), MaxTurns: s.plan.MaxTurns,
		Grade: s.plan.Grade, Judge: s.plan.Judge, Function: s.plan.Function, Summaries: s.plan.Summaries,
		Hosts: s.plan.Hosts, Record: record, Timeouts: timeoutsOf(ctx),
	}
	out, err := s.shardAtHome(ctx, in)
	if err != nil {
		return r.lost(ctx, err)
	}
	r.assembled, r.scored, r.timings, r.busy = out.Assembled, out.Scored, out.Timings, out.Busy
	return nil
}

// shardAtHome runs a shard on the host that holds the run's models. If several hosts share the models and their
// leader is gone, the shard starts again on another host and adopts what it has committed.
func (s *trainStep) shardAtHome(ctx workflow.Context, in RolloutShardInput) (RolloutShardResult, error) {
	for {
		var out RolloutShardResult
		if err := s.home.find(ctx, s.scope); err != nil {
			return out, err
		}
		if in.Hosts > 1 {
			in.Home = s.home.host
		}
		err := child(shardOptions(ctx, in), RolloutShard, in, &out)
		if in.Hosts <= 1 || !left(err) {
			return out, err
		}
		if s.home.host == in.Home { // only the first of several concurrent shards that notice resets the home
			s.home.host = ""
		}
	}
}

func shardOptions(ctx workflow.Context, in RolloutShardInput) workflow.Context {
	return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:    ShardWorkflowID(in.Run, in.Step, in.Shard),
		StaticSummary: fmt.Sprintf("shard %d of step %d of %s", in.Shard, in.Step, in.Run),
		TypedSearchAttributes: temporal.NewSearchAttributes(attrRunID.ValueSet(in.Run),
			attrStep.ValueSet(int64(in.Step)),
			attrStage.ValueSet(api.StageRollout)),
	})
}

// lost returns the failure of a shard's workflow. An error that names what failed is returned unchanged. Any other
// error, such as a workflow that a person terminated, is a failure of the shard's rollout.
func (r *shardRollout) lost(ctx workflow.Context, err error) error {
	if saysItself(err) || ctx.Err() != nil {
		return err
	}
	var child *temporal.ChildWorkflowExecutionError
	if temporal.IsCanceledError(err) { // by a person and not with the step: the step fails and can be retried
		err = errors.New("the shard's workflow was cancelled")
	} else if errors.As(err, &child) && child.Unwrap() != nil {
		err = child.Unwrap()
	}
	return r.at(api.StageRollout, -1, err)
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
