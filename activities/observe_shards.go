package activities

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"github.com/ropewalk/ropewalk/activities/api"
)

// ObserveShards reads the heartbeats of the shards that the asking workflow runs, which Temporal keeps. A workflow
// cannot see them itself.
type ObserveShards struct{}

// Execute sums up the running shards of each task queue.
func (ObserveShards) Execute(ctx context.Context, _ api.ObserveInput) (api.Observed, error) {
	of := activity.GetInfo(ctx).WorkflowExecution
	seen, err := activity.GetClient(ctx).DescribeWorkflowExecution(ctx, of.ID, of.RunID)
	if err != nil {
		return api.Observed{}, fmt.Errorf("describe workflow %s: %w", of.ID, err)
	}
	return observed(seen.GetPendingActivities())
}

// queueOf is the task queue of the activity under ctx; "" outside of activities.
func queueOf(ctx context.Context) string {
	if !activity.IsActivity(ctx) {
		return ""
	}
	return activity.GetInfo(ctx).TaskQueue
}

// observed sums up what the heartbeats of shards say, by queue in the order of the queues' names.
func observed(pending []*workflow.PendingActivityInfo) (out api.Observed, err error) {
	sampling := map[string]int{} // shards that have sampled
	for _, p := range pending {
		if p.GetActivityType().GetName() != api.RunEpisodes || p.GetHeartbeatDetails() == nil ||
			p.GetState() != enums.PENDING_ACTIVITY_STATE_STARTED {
			continue
		}
		var done, total int64
		var s api.ShardState
		if len(p.GetHeartbeatDetails().GetPayloads()) < 3 {
			continue // its episodes have not begun
		}
		if err := converter.GetDefaultDataConverter().FromPayloads(p.GetHeartbeatDetails(), &done, &total,
			&s); err != nil {
			return out, fmt.Errorf("heartbeat of activity %s: %w", p.GetActivityId(), err)
		}
		if s.Queue == "" {
			continue // its episodes go on turn by turn, or the third detail is another one
		}
		i, found := slices.BinarySearchFunc(out.Queues, s.Queue, func(q api.ObservedQueue, name string) int {
			return cmp.Compare(q.Queue, name)
		})
		if !found {
			out.Queues = slices.Insert(out.Queues, i, api.ObservedQueue{Queue: s.Queue})
		}
		q := &out.Queues[i]
		q.Shards++
		if s.TokensPerSec > 0 {
			q.PerToken += 1 / s.TokensPerSec
			sampling[q.Queue]++
		}
	}
	for i := range out.Queues {
		if n := sampling[out.Queues[i].Queue]; n > 0 {
			out.Queues[i].PerToken /= float64(n)
		}
	}
	return out, nil
}
