package runs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// pollsWithin is how long ago a worker that is there has asked for work: it asks once a minute.
const pollsWithin = 2 * time.Minute

// Workers lists the workers that poll the queues of activities, or did a moment ago.
func (s *Session) Workers(ctx context.Context) ([]string, error) {
	there := map[string]bool{}
	for _, queue := range taskQueues {
		d, err := s.Temporal.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: s.Lease.Addresses().Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: queue},
			TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY})
		if err != nil {
			return nil, fmt.Errorf("look for workers of queue %s: %w", queue, err)
		}
		for _, p := range d.GetPollers() {
			if time.Since(p.GetLastAccessTime().AsTime()) < pollsWithin {
				there[p.GetIdentity()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(there)), nil
}
