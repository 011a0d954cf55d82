package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/workflows"
)

// farWorkers are rollout workers behind a distance. They join through the task queue alone.
type farWorkers struct {
	h       *home // with the servers' addresses as the workers see them
	running map[int]*command
	killed  int
}

func (f *farWorkers) join(t *testing.T) {
	t.Helper()
	w := f.h.start(t, "worker", "--queues", "rollout,sandbox")
	f.running[w.cmd.Process.Pid] = w
}

// kill kills a worker without notice, and another one joins.
func (f *farWorkers) kill(t *testing.T, pid int) {
	t.Helper()
	require.True(t, f.running[pid].running(), "it ended by itself: %s", f.running[pid].err.String())
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	<-f.running[pid].ended
	delete(f.running, pid)
	f.killed++
	f.join(t)
}

// any is one of the workers.
func (f *farWorkers) any(rng *rand.Rand) int {
	skip := rng.IntN(len(f.running))
	for pid := range f.running {
		if skip--; skip < 0 {
			return pid
		}
	}
	panic("no worker")
}

// number reads a whole number from a variable.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}

// Rollout workers are far from the servers: every byte is 20 ms late, and connections break at random. Some are killed
// while they work, and one is frozen until another one has its shard, and then woken. Every run's final weights are
// those of the undisturbed run, whose episodes were generated turn by turn by one worker. ROPEWALK_FAR_WORKERS is the
// number of workers, and ROPEWALK_FAR_MINUTES for how many minutes runs follow each other while two workers a minute
// are killed (make test-rollout-workers).
func TestRolloutWorkersVanish(t *testing.T) {
	longform.Need(t, "ROPEWALK_FAR_WORKERS", "test-rollout-workers")
	h, want := needs(t, ownNamespace)
	h = h.with("ROPEWALK_NO_WORKER=1")
	rng := rand.New(rand.NewPCG(19, 5))
	d := &distance{late: 20 * time.Millisecond, lasts: 15 * time.Second, rng: rand.New(rand.NewPCG(19, 6))}
	rest := h.startWorker(t, "--queues", "cpu,gpu")
	env := append(d.between(t, shared.servers), "TEMPORAL_NAMESPACE="+h.namespace, "ROPEWALK_S3_BUCKET="+h.namespace)
	far := &farWorkers{h: h.with(env...), running: map[int]*command{}}
	for range number(t, "ROPEWALK_FAR_WORKERS", 3) {
		far.join(t)
	}
	c := h.dial(t)
	minutes := number(t, "ROPEWALK_FAR_MINUTES", 0)
	end := time.Now().Add(time.Duration(minutes) * time.Minute)
	next := time.Now().Add(30 * time.Second)
	for n := 1; n == 1 || time.Now().Before(end); n++ {
		name := fmt.Sprintf("far-%d", n)
		run := h.start(t, recipe(name, "--set", "rollout.mode=interleaved", "--set", "rollout.shard_groups=1")...)
		if n == 1 {
			for range 2 {
				at := far.working(t, c, run, name)
				far.kill(t, at.worker)
			}
			far.freeze(t, c, run, name)
		}
		for run.running() {
			if minutes > 0 && time.Now().After(next) {
				far.kill(t, far.any(rng))
				next = next.Add(30 * time.Second)
			}
			time.Sleep(20 * time.Millisecond)
		}
		r := run.wait(t).ok(t).report(t)
		require.Equal(t, want.Digest, r.Digest, name)
		h.run(t, "verify", name).ok(t)
	}
	t.Logf("%d workers were killed, %d connections broke", far.killed, d.broken.Load())
	require.GreaterOrEqual(t, far.killed, 2)
	require.Positive(t, d.broken.Load())
	for _, w := range far.running {
		w.end(t)
	}
	rest.end(t)
}

// freeze freezes a worker that runs episodes, wakes it when another one has its shard, and leaves it working.
func (f *farWorkers) freeze(t *testing.T, c client.Client, run *command, name string) {
	t.Helper()
	var at execution
	eventually(t, func() bool {
		at = f.working(t, c, run, name)
		require.NoError(t, syscall.Kill(at.worker, syscall.SIGSTOP))
		time.Sleep(100 * time.Millisecond) // an answer in flight has arrived
		for _, now := range episodes(c, name) {
			if now == at {
				return true
			}
		}
		require.NoError(t, syscall.Kill(at.worker, syscall.SIGCONT))
		return false
	}, "episodes of %s to be run", name)
	eventually(t, func() bool {
		for _, now := range episodes(c, name) {
			if now.workflow == at.workflow && now.activity == at.activity {
				return now.attempt > at.attempt && now.worker != at.worker
			}
		}
		return true // it has ended since
	}, "another worker to take over from the frozen one")
	require.NoError(t, syscall.Kill(at.worker, syscall.SIGCONT))
}

// working waits until a worker that lives runs episodes.
func (f *farWorkers) working(t *testing.T, c client.Client, run *command, name string) (at execution) {
	t.Helper()
	eventually(t, func() bool {
		require.True(t, run.running(), "%s ends too early to prove anything: %s", name, run.err.String())
		for _, at = range episodes(c, name) {
			if f.running[at.worker] != nil {
				return true
			}
		}
		return false
	}, "episodes of %s to be run", name)
	return at
}

// episodes are the shards that workers run for a run.
func episodes(c client.Client, name string) (out []execution) {
	for step := 1; step <= steps; step++ {
		workflow := workflows.StepWorkflowID(name, step)
		d, err := c.DescribeWorkflowExecution(context.Background(), workflow, "")
		if err != nil {
			continue // it has not begun
		}
		for _, a := range d.GetPendingActivities() {
			if a.GetActivityType().GetName() == api.RunEpisodes &&
				a.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED {
				out = append(out, execution{workflow, a.GetActivityId(), a.GetAttempt(),
					processOf(a.GetLastWorkerIdentity())})
			}
		}
	}
	return out
}
