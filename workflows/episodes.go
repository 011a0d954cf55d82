package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// episodes takes one shard from prompts to rewards in one activity.
func (s *trainStep) episodes(ctx workflow.Context, r *shardRollout, prompts schema.Ref, record bool) error {
	in := api.EpisodesInput{
		Scope: s.scope, Shard: r.shard, Prompts: prompts, Policy: s.sampling(), MaxTurns: s.plan.MaxTurns,
		Grade: s.plan.Grade, Judge: s.plan.Judge, Function: s.plan.Function, Record: record, Timeouts: timeoutsOf(ctx),
	}
	out, err := call[api.Episodes](ctx, api.RunEpisodes, fmt.Sprintf("shard %d", r.shard), in)
	if err != nil {
		return r.at(api.StageRollout, -1, err)
	}
	r.assembled, r.scored, r.timings, r.busy = out.Assembled, out.Scored, out.Timings, out.Busy
	return nil
}
