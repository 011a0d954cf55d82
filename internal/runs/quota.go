package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

// Quota is how many activities of a task queue may start in a second, on all workers together. It is kept by the
// Temporal server.
type Quota struct {
	Queue   string `json:"queue"`
	Rate    *Rate  `json:"rate"`     // of the queue; nil if there is no limit
	KeyRate *Rate  `json:"key_rate"` // of each fairness key of weight 1; nil if there is no limit
}

// Rate is a limit that someone has set.
type Rate struct {
	PerSecond float64   `json:"per_second"` // 0 stops a queue, and is no limit of keys (Temporal 1.29)
	By        string    `json:"by"`
	At        time.Time `json:"at"`
}

// RateChange changes a limit.
type RateChange struct {
	PerSecond float64 `json:"per_second"`
	Remove    bool    `json:"remove,omitempty"`
}

// taskQueues are the queues that every worker of activities can poll.
var taskQueues = []string{workflows.QueueCPU, workflows.QueueRollout, workflows.QueueSandbox, workflows.QueueGPU}

// Quotas reads the quotas of queues, of all of them where none is named.
func (s *Session) Quotas(ctx context.Context, queues ...string) ([]Quota, error) {
	if len(queues) == 0 {
		queues = taskQueues
	}
	out := []Quota{}
	for _, queue := range queues {
		if err := knownQueue(queue); err != nil {
			return nil, err
		}
		d, err := s.Temporal.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: s.Lease.Addresses().Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: queue},
			TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY, ReportConfig: true})
		if err != nil {
			return nil, fmt.Errorf("read the quota of queue %s: %w", queue, err)
		}
		out = append(out, quotaOf(queue, d.GetConfig()))
	}
	return out, nil
}

// SetQuota changes the limits of a queue that are not nil, and returns what the server has then. Activities that have
// started go on.
func (s *Session) SetQuota(ctx context.Context, queue string, rate, keyRate *RateChange) (Quota, error) {
	if err := knownQueue(queue); err != nil {
		return Quota{}, err
	}
	if err := s.Note(ctx, schema.NoRun, "quota", map[string]any{"queue": queue, "rate": rate,
		"key_rate": keyRate}); err != nil {
		return Quota{}, err
	}
	update := func(c *RateChange) *workflowservice.UpdateTaskQueueConfigRequest_RateLimitUpdate {
		if c == nil {
			return nil
		}
		u := &workflowservice.UpdateTaskQueueConfigRequest_RateLimitUpdate{Reason: "ropewalk quota"}
		if !c.Remove {
			u.RateLimit = &taskqueuepb.RateLimit{RequestsPerSecond: float32(c.PerSecond)}
		}
		return u
	}
	r, err := s.Temporal.WorkflowService().UpdateTaskQueueConfig(ctx, &workflowservice.UpdateTaskQueueConfigRequest{
		Namespace: s.Lease.Addresses().Namespace, Identity: Actor(), TaskQueue: queue,
		TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY, UpdateQueueRateLimit: update(rate),
		UpdateFairnessKeyRateLimitDefault: update(keyRate)})
	var missing *serviceerror.Unimplemented
	if errors.As(err, &missing) {
		return Quota{}, badinput.Errorf("this Temporal server keeps no quotas of task queues: it needs Temporal 1.29")
	}
	if err != nil {
		return Quota{}, fmt.Errorf("set the quota of queue %s: %w", queue, err)
	}
	return quotaOf(queue, r.GetConfig()), nil
}

func quotaOf(queue string, c *taskqueuepb.TaskQueueConfig) Quota {
	read := func(c *taskqueuepb.RateLimitConfig) *Rate {
		if c.GetRateLimit() == nil {
			return nil
		}
		return &Rate{PerSecond: float64(c.GetRateLimit().GetRequestsPerSecond()),
			By: c.GetMetadata().GetUpdateIdentity(), At: c.GetMetadata().GetUpdateTime().AsTime()}
	}
	return Quota{Queue: queue, Rate: read(c.GetQueueRateLimit()), KeyRate: read(c.GetFairnessKeysRateLimitDefault())}
}

func knownQueue(name string) error {
	if slices.Contains(taskQueues, name) || strings.HasPrefix(name, api.HostQueue("")) {
		return nil
	}
	return badinput.Errorf("QUEUE: must be %s, or %s.HOST, got %q", strings.Join(taskQueues, ", "),
		workflows.QueueGPU, name)
}
