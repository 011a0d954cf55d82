package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/workflows"
)

// starts holds which workflow each activity belonged to, in the order in which they started.
type starts struct {
	mu    sync.Mutex
	order []string
}

func (s *starts) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.order)
}

// episodes does no work: it only notes whose it is.
func (s *starts) episodes(in string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = append(s.order, in)
	return nil
}

// shards is a workflow with many activities of the queue rollout at once, as a step with many shards has.
func shards(ctx workflow.Context, n int) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: workflows.QueueRollout,
		StartToCloseTimeout: time.Hour})
	name := workflow.GetInfo(ctx).WorkflowExecution.ID
	var all []workflow.Future
	for range n {
		all = append(all, workflow.ExecuteActivity(ctx, "episodes", name))
	}
	for _, one := range all {
		if err := one.Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// queue is what the server says about the activities of a queue.
func (h *home) queue(t *testing.T, c client.Client, name string) *workflowservice.DescribeTaskQueueResponse {
	t.Helper()
	d, err := c.WorkflowService().DescribeTaskQueue(t.Context(), &workflowservice.DescribeTaskQueueRequest{
		Namespace: h.namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: name},
		TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY, ReportStats: true, ReportConfig: true})
	require.NoError(t, err)
	return d
}

// A small run that comes last is not behind the backlog of a big one with another fairness key; with a greater weight
// it has a greater share. Quotas of a queue are set, read back, obeyed and removed.
func TestQueuesAreShared(t *testing.T) {
	h, _ := needs(t, emptyNamespace)
	h = h.with("ROPEWALK_NO_WORKER=1", "ROPEWALK_ACTOR=ada")
	c := h.dial(t)
	begin := func(name string, n int, p temporal.Priority) client.WorkflowRun {
		w, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: name, TaskQueue: workflows.QueueCPU,
			Priority: p}, shards, n)
		require.NoError(t, err)
		return w
	}
	steps := worker.New(c, workflows.QueueCPU, worker.Options{DisableRegistrationAliasing: true})
	steps.RegisterWorkflow(shards)
	require.NoError(t, steps.Start())
	defer steps.Stop()
	described := func() *workflowservice.DescribeTaskQueueResponse { return h.queue(t, c, workflows.QueueRollout) }
	waiting := func(n int) {
		t.Helper()
		eventually(t, func() bool { return described().GetStats().GetApproximateBacklogCount() == int64(n) },
			"%d activities to wait", n)
	}
	var all []client.WorkflowRun
	all = append(all, begin("big", 40, temporal.Priority{FairnessKey: "big"}))
	waiting(40)
	all = append(all, begin("small", 4, temporal.Priority{FairnessKey: "small"}))
	waiting(44)
	all = append(all, begin("heavy", 12, temporal.Priority{FairnessKey: "heavy", FairnessWeight: 4}))
	waiting(56)

	seen := &starts{}
	rollout := worker.New(c, workflows.QueueRollout, worker.Options{MaxConcurrentActivityExecutionSize: 1,
		MaxConcurrentActivityTaskPollers: 1, DisableWorkflowWorker: true})
	rollout.RegisterActivityWithOptions(seen.episodes, activity.RegisterOptions{Name: "episodes"})
	require.NoError(t, rollout.Start())
	for _, w := range all {
		require.NoError(t, w.Get(t.Context(), nil))
	}
	order := seen.all()
	require.Len(t, order, 56)
	last := func(name string) int {
		slices.Reverse(order)
		defer slices.Reverse(order)
		return len(order) - 1 - slices.Index(order, name)
	}
	require.Less(t, last("small"), 28, "four turns of three keys, one of which has four times the weight: %v", order)
	require.Less(t, last("heavy"), 28, "12 of a weight of 4: %v", order)
	require.Equal(t, "big", order[55])

	type rate struct {
		PerSecond float64 `json:"per_second"`
		By        string
	}
	type quota struct {
		Queue   string
		Rate    *rate
		KeyRate *rate `json:"key_rate"`
	}
	ask := func(args ...string) (out []quota) {
		t.Helper()
		text := h.run(t, append([]string{"quota", "--json"}, args...)...).ok(t).out
		require.NoError(t, json.Unmarshal([]byte(text), &out), text)
		return out
	}
	none := []quota{{Queue: "cpu"}, {Queue: "rollout"}, {Queue: "sandbox"}, {Queue: "gpu"}}
	require.Equal(t, none, ask())
	stopped := []quota{{"rollout", &rate{0, "ada"}, &rate{0.25, "ada"}}}
	require.Equal(t, stopped, ask("rollout", "--rate", "0", "--key-rate", "0.25"))
	require.Equal(t, stopped, ask("rollout"))
	eventually(t, func() bool {
		rate := described().GetEffectiveRateLimit()
		return rate != nil && rate.GetRequestsPerSecond() == 0
	}, "the queue to obey its quota")
	require.EqualValues(t, 0.25, described().GetConfig().GetFairnessKeysRateLimitDefault().GetRateLimit().
		GetRequestsPerSecond())
	one := begin("stopped", 3, temporal.Priority{FairnessKey: "small"})
	waiting(3)
	require.Len(t, seen.all(), 56, "nothing starts")
	require.Equal(t, []quota{{"rollout", nil, &rate{0.25, "ada"}}}, ask("rollout", "--rate", "none"))
	require.Equal(t, []quota{{"rollout", nil, nil}}, ask("rollout", "--key-rate", "none"))
	require.Equal(t, none, ask())
	require.NoError(t, one.Get(t.Context(), nil))
	rollout.Stop()

	h.run(t, "gc").ok(t)
	refused := h.run(t, "gc", "--delete", "--min-age", "2h") // the worker has just asked for work
	require.Equal(t, 2, refused.code, refused.err)
	require.Contains(t, refused.err, "--min-age: must be at least 6h, the longest time limit of a stage, while workers")
	h.run(t, "gc", "--delete", "--min-age", "6h").ok(t)
	deeds := h.run(t, "audit").ok(t).out
	require.Regexp(t, `(?m)^\S+ +ada +\S+ +gc +{"min_age":"6h0m0s","unfinished":false}$`, deeds)
	require.Regexp(t, `(?m)^\S+ +ada +\S+ +quota +{"key_rate":{"per_second":0.25},"queue":"rollout",`+
		`"rate":{"per_second":0}}$`, deeds)
	require.Len(t, strings.Split(strings.TrimSpace(deeds), "\n"), 1+3+1, deeds)

	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"quota", "rollouts"}, "QUEUE: must be cpu, rollout, sandbox, gpu, or gpu.HOST"},
		{[]string{"quota", "--rate", "1"}, "QUEUE"},
		{[]string{"quota", "gpu", "--rate", "-1"}, "--rate: must be a number ≥ 0 or none"},
		{[]string{"quota", "gpu", "--key-rate", "fast"}, "--key-rate: must be a number ≥ 1e-06 or none"},
		{[]string{"quota", "gpu", "--key-rate", "0"}, "--rate 0 stops the queue"},
	} {
		r := h.run(t, tt.args...)
		require.Equal(t, 2, r.code, tt.args)
		require.Contains(t, r.err, tt.want)
	}
}
