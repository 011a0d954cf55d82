package monitor

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// pollsWithin is how recently a worker must have polled to count: a long poll takes a minute at most.
const pollsWithin = 75 * time.Second

// queue is one kind of tasks of a task queue.
type queue struct {
	name, kind       string // kind is workflow or activity
	backlog, pollers int
	age              time.Duration // of the oldest task
}

func (m *Monitor) lookAtQueues(ctx context.Context) (all []queue, _ error) {
	for _, q := range m.o.Queues {
		kinds := []enumspb.TaskQueueType{enumspb.TASK_QUEUE_TYPE_ACTIVITY}
		if q.Workflows {
			kinds = append(kinds, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		}
		for _, kind := range kinds {
			looked, err := m.lookAtQueue(ctx, q.Name, kind)
			if err != nil {
				return nil, err
			}
			all = append(all, looked)
		}
	}
	return all, nil
}

func (m *Monitor) lookAtQueue(ctx context.Context, name string, kind enumspb.TaskQueueType) (queue, error) {
	d, err := m.o.Temporal.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: m.o.Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: name}, TaskQueueType: kind,
		ReportStats: true})
	if err != nil {
		return queue{}, fmt.Errorf("describe task queue %s: %w", name, err)
	}
	q := queue{name: name, kind: "activity", backlog: int(d.GetStats().GetApproximateBacklogCount()),
		age: d.GetStats().GetApproximateBacklogAge().AsDuration()}
	if kind == enumspb.TASK_QUEUE_TYPE_WORKFLOW {
		q.kind = "workflow"
	}
	workers := map[string]bool{}
	for _, p := range d.GetPollers() {
		if m.o.Now().Sub(p.GetLastAccessTime().AsTime()) < pollsWithin {
			workers[p.GetIdentity()] = true
		}
	}
	q.pollers = len(workers)
	return q, nil
}
