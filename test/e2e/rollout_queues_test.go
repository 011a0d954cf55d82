package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/workflows"
)

// shardQueues are the queues of the tests of several.
var shardQueues = []string{"rollout.a", "rollout.b", "rollout.c"}

// spreadOver makes a run spread small shards over queues.
func spreadOver(queues ...string) []string {
	return []string{"--set", "rollout.mode=interleaved", "--set", "rollout.shard_groups=1", "--set",
		"rollout.queues=[" + strings.Join(queues, ", ") + "]"}
}

// Three queues, each with a worker, share the shards of a run. One worker is killed while it works, so that its queue
// is lost, and its shards go on in the others. Later another worker comes for that queue, and it joins again. The
// weights are those of the undisturbed run, all of whose shards one worker generated, turn by turn. With -update, the
// history of the step is recorded in which the worker was killed.
func TestShardsAreSpreadOverQueues(t *testing.T) {
	long(t, "ROPEWALK_FAR_WORKERS", "test-rollout-workers")
	h, want := needs(t, ownNamespace)
	h = h.with("ROPEWALK_NO_WORKER=1")
	// Shards last longer with servers that are far away.
	d := &distance{late: 20 * time.Millisecond, lasts: time.Hour, rng: rand.New(rand.NewPCG(19, 7))}
	rest := h.startWorker(t, "--queues", "cpu,gpu,rollout")
	far := h.with(d.between(t, shared.servers)...)
	f := &farWorkers{h: far, running: map[int]*command{}}
	of := map[string]*command{}
	for _, q := range shardQueues {
		of[q] = far.start(t, "worker", "--queues", q+",sandbox")
	}
	f.running[of["rollout.b"].cmd.Process.Pid] = of["rollout.b"] // the one that is killed
	c := h.dial(t)
	run := h.start(t, recipe("spread", spreadOver(shardQueues...)...)...)
	at := f.working(t, c, run, "spread")
	require.NoError(t, syscall.Kill(at.worker, syscall.SIGKILL))
	<-of["rollout.b"].ended
	eventually(t, func() bool { return h.asksAgain(t, at.workflow, "rollout.b") }, "queue rollout.b to be lost")
	of["rollout.b"] = far.start(t, "worker", "--queues", "rollout.b,sandbox")

	require.Equal(t, want.Digest, run.wait(t).ok(t).report(t).Digest)
	h.run(t, "verify", "spread").ok(t)
	var took []string
	joined := false
	for step := 1; step <= steps; step++ {
		workflow := workflows.StepWorkflowID("spread", step)
		queues := h.scheduled(t, workflow, api.RunEpisodes)
		took = append(took, queues...)
		joined = joined || workflow > at.workflow && slices.Contains(queues, "rollout.b")
	}
	for _, q := range shardQueues {
		require.Contains(t, took, q)
	}
	require.True(t, joined, "the queue that was lost takes shards again")
	if *update {
		save(t, h, at.workflow, "", "step-queues.json")
	}
	for _, w := range of {
		w.end(t)
	}
	rest.end(t)
}

// scheduled returns the queues to which a workflow has scheduled an activity, in order.
func (h *home) scheduled(t *testing.T, workflow, activity string) (queues []string) {
	t.Helper()
	for events := fetch(h.dial(t), workflow, ""); events.HasNext(); {
		event, err := events.Next()
		require.NoError(t, err)
		if a := event.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == activity &&
			event.EventType == enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED {
			queues = append(queues, a.GetTaskQueue().GetName())
		}
	}
	return queues
}

// asksAgain reports whether a step has asked a queue a second time what it has room for.
func (h *home) asksAgain(t *testing.T, workflow, queue string) bool {
	t.Helper()
	asked := fmt.Sprint(h.scheduled(t, workflow, api.ReportRoom))
	return strings.Count(asked, queue) > 1
}
