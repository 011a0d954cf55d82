package stack

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/internal/temporalconf"
)

// TemporalState is what a Temporal server has of what temporal.yaml names. A server without the namespace has none of
// the rest.
type TemporalState struct {
	Namespace bool          // the namespace exists
	Retention time.Duration // of closed workflows
	// Attributes maps the namespace's custom search attributes to their types.
	Attributes map[string]string
	// Workers counts the workers that have polled each queue of temporal.yaml within the last minutes.
	Workers map[string]int
}

// InspectTemporal reads what the namespace that options name has. It changes nothing.
func InspectTemporal(ctx context.Context, c client.Client, options client.Options,
	conf temporalconf.Config) (TemporalState, error) {
	state := TemporalState{Attributes: map[string]string{}, Workers: map[string]int{}}
	service := c.WorkflowService()
	described, err := service.DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: options.Namespace})
	if isMissing(err) {
		return state, nil
	}
	if err != nil {
		return state, fmt.Errorf("describe namespace %s: %w", options.Namespace, err)
	}
	state.Namespace = true
	state.Retention = described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	attributes, err := namespace{name: options.Namespace}.attributes(ctx, c.OperatorService())
	if err != nil {
		return state, err
	}
	for name, kind := range attributes {
		state.Attributes[name] = kind.String()
	}
	for _, q := range conf.Queues.All() {
		if state.Workers[q.Name], err = pollersOf(ctx, service, options.Namespace, q); err != nil {
			return state, err
		}
	}
	return state, nil
}

// pollersOf counts the workers that poll a queue for activities.
func pollersOf(ctx context.Context, s workflowservice.WorkflowServiceClient, namespace string,
	q temporalconf.NamedQueue) (int, error) {
	queue, err := s.DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: q.Name},
		TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY})
	if err != nil {
		return 0, fmt.Errorf("describe queue %s of namespace %s: %w", q.Name, namespace, err)
	}
	workers := map[string]bool{}
	for _, p := range queue.GetPollers() {
		workers[p.GetIdentity()] = true
	}
	return len(workers), nil
}

// PrepareTemporal creates the namespace that options name, raises its retention and adds its search attributes, where
// they are missing. It lowers and removes nothing. An attribute of another type is an error.
func PrepareTemporal(ctx context.Context, c client.Client, options client.Options, conf temporalconf.Config) error {
	conf.Namespace = options.Namespace // the caller asks for it by its name
	n := namespace{name: options.Namespace, conf: conf, at: options.HostPort, own: true, say: func(string) {}}
	if err := n.ensureRetention(ctx, c.WorkflowService()); err != nil {
		return err
	}
	return n.ensureAttributes(ctx, c.OperatorService())
}
