package activities

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"github.com/ropewalk/ropewalk/activities/api"
)

// beating is a running activity with a heartbeat.
func beating(t *testing.T, name string, details ...any) *workflow.PendingActivityInfo {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayloads(details...)
	require.NoError(t, err)
	return &workflow.PendingActivityInfo{ActivityType: &common.ActivityType{Name: name}, HeartbeatDetails: p,
		State: enums.PENDING_ACTIVITY_STATE_STARTED}
}

// The heartbeats of shards are summed up by queue. Those that have sampled nothing yet say nothing about the rate, and
// activities that are no shards, or report no flow, are left out.
func TestShardsAreObservedByQueue(t *testing.T) {
	shard := func(queue string, rate float64) *workflow.PendingActivityInfo {
		return beating(t, api.RunEpisodes, 1, 8, api.ShardState{Episodes: 8, Queue: queue, TokensPerSec: rate},
			api.Capacity{Engine: "cpu"})
	}
	waiting := shard("rollout.a", 7)
	waiting.State = enums.PENDING_ACTIVITY_STATE_SCHEDULED
	out, err := observed([]*workflow.PendingActivityInfo{
		shard("rollout.b", 10), shard("rollout.a", 4), shard("rollout.b", 0), shard("rollout.b", 5), waiting,
		shard("rollout.c", 0), beating(t, api.RunEpisodes, 0, 0), beating(t, api.RunEpisodes, 0, 0, api.Capacity{}),
		beating(t, api.MakeBatch, 1, 2, api.ShardState{Queue: "cpu", TokensPerSec: 1}),
		{ActivityType: &common.ActivityType{Name: api.RunEpisodes}, State: enums.PENDING_ACTIVITY_STATE_STARTED},
	})
	require.NoError(t, err)
	require.Equal(t, []api.ObservedQueue{{Queue: "rollout.a", Shards: 1, PerToken: 0.25},
		{Queue: "rollout.b", Shards: 3, PerToken: 0.15000000000000002}, {Queue: "rollout.c", Shards: 1}}, out.Queues)

	_, err = observed([]*workflow.PendingActivityInfo{beating(t, api.RunEpisodes, "x", "y", "z")})
	require.ErrorContains(t, err, "heartbeat of activity")
}
