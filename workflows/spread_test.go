package workflows

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/api"
)

// fleet fakes the workers of several queues. Each does one shard at a time.
type fleet struct {
	*fakes
	t *testing.T
	// takes returns how long an attempt at a shard takes on a queue, and how it ends.
	takes func(queue string, shard int) (time.Duration, error)
	// comes returns when a worker answers on a queue that is asked for the n-th time, from 0, and how.
	comes func(queue string, n int) (time.Duration, error)
	seen  api.Observed // what heartbeats say

	mu       sync.Mutex // held while an activity decides how it ends
	asked    map[string]int
	attempts []string // "shard on queue", in order
}

func newFleet(t *testing.T, shards int) *fleet {
	t.Helper()
	f := &fleet{t: t, asked: map[string]int{}, fakes: newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: shards,
		MaxTurns: 2, Interleaved: true, Queues: []string{"rollout", "rollout.b", "rollout.c"}, ShardTokens: 1000})}
	f.episodes(func(api.EpisodesInput) error { return nil })
	f.takes = func(string, int) (time.Duration, error) { return time.Minute, nil }
	f.comes = func(string, int) (time.Duration, error) { return 0, nil }
	f.env.RegisterActivityWithOptions(func(ctx context.Context, _ api.RoomInput) (api.Room, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		queue := activity.GetInfo(ctx).TaskQueue
		after, err := f.comes(queue, f.asked[queue])
		f.asked[queue]++
		room := api.Room{Host: "h", Shards: 1, Capacity: api.Capacity{Engine: "cpu"}}
		return api.Room{}, f.later(ctx, after, room, err)
	}, activity.RegisterOptions{Name: api.ReportRoom, DisableAlreadyRegisteredCheck: true})
	f.env.RegisterActivityWithOptions(func(ctx context.Context, in api.EpisodesInput) (api.Episodes, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		queue := activity.GetInfo(ctx).TaskQueue
		f.attempts = append(f.attempts, fmt.Sprintf("%d on %s", in.Shard, queue))
		after, err := f.takes(queue, in.Shard)
		out := api.Episodes{Assembled: ref("assembled", in.Step, in.Shard), Tokens: 60,
			Timings: []api.Timing{{Stage: api.StageRollout, Start: 1, End: 2}}}
		if err == nil {
			out.Scored, err = f.score(api.ScoreInput{Scope: in.Scope, Shard: in.Shard})
		}
		return out, f.later(ctx, after, out, err)
	}, activity.RegisterOptions{Name: api.RunEpisodes, DisableAlreadyRegisteredCheck: true})
	handle(f.fakes, api.ObserveShards, func(api.ObserveInput) (api.Observed, error) { return f.seen, nil })
	return f
}

// later ends an activity after some time of the workflow's. An activity that was cancelled meanwhile has ended.
func (f *fleet) later(ctx context.Context, after time.Duration, out any, err error) error {
	token := activity.GetInfo(ctx).TaskToken
	f.env.RegisterDelayedCallback(func() { _ = f.env.CompleteActivity(token, out, err) }, after)
	return activity.ErrResultPending
}

// run runs the one step, and returns how many attempts there were on each queue.
func (f *fleet) run() map[string]int {
	f.t.Helper()
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(f.t, f.env.GetWorkflowError())
	on := map[string]int{}
	for _, a := range f.attempts {
		_, queue, _ := strings.Cut(a, " on ")
		on[queue]++
	}
	return on
}

// fallenSilent is how an activity fails whose worker is gone.
func fallenSilent() error { return temporal.NewHeartbeatTimeoutError() }

// untaken is how an activity fails that no worker has taken.
func untaken() error { return temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil) }

// Queues that are equally fast take equal parts, and everything but the shards goes where it always goes.
func TestShardsAreSpreadOverQueues(t *testing.T) {
	f := newFleet(t, 9)
	require.Equal(t, map[string]int{"rollout": 3, "rollout.b": 3, "rollout.c": 3}, f.run())
	require.Equal(t, 4*9, progressOf(t, f.fakes).Lines[0].Trajectories)
	require.Equal(t, map[string]int{"rollout": 1, "rollout.b": 1, "rollout.c": 1}, f.asked)
}

// A shard whose worker is silent, or is not there, goes on elsewhere. A queue without a worker takes no more shards
// until it has one again.
func TestShardsOfALostQueueAreRunElsewhere(t *testing.T) {
	for name, gone := range map[string]error{"silent": fallenSilent(), "untaken": untaken()} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 12)
			first := true
			f.takes = func(queue string, _ int) (time.Duration, error) {
				if queue == "rollout.b" && first {
					first = false
					return 10 * time.Second, gone
				}
				return time.Minute, nil
			}
			f.comes = func(queue string, n int) (time.Duration, error) {
				if queue == "rollout.b" && n == 1 {
					return 150 * time.Second, nil
				}
				return 0, nil
			}
			on := f.run()
			require.Equal(t, 13, on["rollout"]+on["rollout.b"]+on["rollout.c"], "one attempt more than shards: %v", on)
			require.Equal(t, 2, f.asked["rollout.b"])
			require.Greater(t, on["rollout.b"], 1, "it has joined again")
			require.Less(t, on["rollout.b"], on["rollout"])
			require.Equal(t, 4*12, progressOf(t, f.fakes).Lines[0].Trajectories)
		})
	}
}

// A rollout waits until any of its queues has a worker.
func TestARolloutWaitsForAWorker(t *testing.T) {
	f := newFleet(t, 2)
	f.comes = func(queue string, _ int) (time.Duration, error) {
		return map[string]time.Duration{"rollout": 3 * time.Hour, "rollout.b": time.Hour,
			"rollout.c": 2 * time.Hour}[queue], nil
	}
	require.Equal(t, map[string]int{"rollout.b": 2}, f.run())
}

// A queue that is found to be ten times slower than the others has its shard taken off, and gets no other.
func TestASlowQueueIsRelieved(t *testing.T) {
	f := newFleet(t, 10)
	f.takes = func(queue string, _ int) (time.Duration, error) {
		if queue == "rollout.c" {
			return 10 * time.Minute, nil
		}
		return time.Minute, nil
	}
	f.seen = api.Observed{Queues: []api.ObservedQueue{{Queue: "rollout", Shards: 1, PerToken: 1},
		{Queue: "rollout.b", Shards: 1, PerToken: 1}, {Queue: "rollout.c", Shards: 1, PerToken: 10}}}
	on := f.run()
	require.Equal(t, map[string]int{"rollout": 5, "rollout.b": 5, "rollout.c": 1}, on)
	require.Positive(t, f.calls[api.ObserveShards])
	require.Equal(t, 4*10, progressOf(t, f.fakes).Lines[0].Trajectories)
}

// A shard on which a queue's worker fails for good is tried on the other queues. If all fail, the run parks.
func TestAShardThatFailsIsTriedOnOtherQueues(t *testing.T) {
	f := newFleet(t, 3)
	broken := temporal.NewNonRetryableApplicationError("no room on the device", "disk_full", nil)
	var mended bool
	f.takes = func(queue string, shard int) (time.Duration, error) {
		if queue == "rollout.c" || shard == 1 && !mended {
			return time.Second, broken
		}
		return time.Minute, nil
	}
	f.env.RegisterDelayedCallback(func() { mended = true }, 30*time.Minute)
	f.after(time.Hour, UpdateRetry, RetryInput{})
	var parked Progress
	f.env.RegisterDelayedCallback(func() { parked = progressOf(t, f.fakes) }, 40*time.Minute)
	f.run()
	require.Len(t, parked.Parked.Failures, 1)
	require.Equal(t, 1, parked.Parked.Failures[0].Shard)
	require.Equal(t, "disk_full", parked.Parked.Failures[0].Kind)
	for _, want := range []string{"1 on rollout", "1 on rollout.b", "1 on rollout.c"} {
		require.True(t, slices.Contains(f.attempts, want), want)
	}
}

// If the workers of all queues say that they cannot run the recipe, so does the run. One such worker is left out.
func TestQueuesThatRefuse(t *testing.T) {
	refused := temporal.NewNonRetryableApplicationError("this worker has no sandbox", api.FailBadInput, nil)
	f := newFleet(t, 4)
	f.comes = func(queue string, _ int) (time.Duration, error) {
		if queue == "rollout" {
			return 0, refused
		}
		return time.Second, nil
	}
	require.Equal(t, map[string]int{"rollout.b": 2, "rollout.c": 2}, f.run())

	f = newFleet(t, 4)
	mended := false
	f.comes = func(string, int) (time.Duration, error) {
		if mended {
			return 0, nil
		}
		return 0, refused
	}
	var parked Progress
	f.env.RegisterDelayedCallback(func() { parked, mended = progressOf(t, f.fakes), true }, 30*time.Minute)
	f.after(time.Hour, UpdateRetry, RetryInput{})
	f.run()
	require.Equal(t, api.FailBadInput, parked.Parked.Kind)
	require.Contains(t, parked.Parked.Failures[0].Text, "no sandbox")
}

// A run that is cancelled while shards run, and while others wait, ends.
func TestASpreadRolloutIsCancelled(t *testing.T) {
	f := newFleet(t, 9)
	f.env.RegisterDelayedCallback(f.env.CancelWorkflow, 30*time.Second)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.True(t, f.env.IsWorkflowCompleted())
	require.True(t, temporal.IsCanceledError(f.env.GetWorkflowError()), "%v", f.env.GetWorkflowError())
	require.Len(t, f.attempts, 3)
}
