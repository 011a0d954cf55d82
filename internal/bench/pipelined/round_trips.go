package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/workflows"
)

// roundTrips compares a stage without work with an activity that does nothing, both from their scheduling until their
// workflow has taken the result. The stage is publish of a run with a lag, which loads no policy: what it does is what
// every stage does, and the commit of the step's head.
type roundTrips struct {
	Stage float64 `json:"stage_ms"` // median
	Bare  float64 `json:"bare_ms"`  // median
}

// mostStage is the most that a stage without work may take, in round trips of a bare activity.
const mostStage = 5

// String is a line for people.
func (r roundTrips) String() string {
	return fmt.Sprintf("\na stage without work takes %.1f ms, %.1f times as long as a bare activity (%.1f ms; "+
		"at most %d)\n",
		r.Stage, r.Stage/r.Bare, r.Bare, mostStage)
}

// bareActivities is how many bare activities a workflow runs, one after the other.
const bareActivities = 100

// bareQueue and bareName name the workflow and the activity that do nothing, and their queues.
const (
	bareQueue = "bench-bare"
	bareName  = "Bare"
)

// bare runs activities that do nothing. Like those of stages, they are on another queue than their workflow.
func bare(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: bareQueue + "-activities",
		StartToCloseTimeout: time.Minute})
	for range bareActivities {
		if err := workflow.ExecuteActivity(ctx, bareName).Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// roundTrips measures both on the server of the trials, which is idle otherwise.
func (b *bencher) roundTrips(ctx context.Context, all []trial) (out roundTrips, err error) {
	servers, err := b.call(ctx, b.program.Env, "env")
	if err != nil {
		return out, err
	}
	options := client.Options{Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))}
	for line := range strings.Lines(servers) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name {
		case "TEMPORAL_ADDRESS":
			options.HostPort = value
		case "TEMPORAL_NAMESPACE":
			options.Namespace = value
		}
	}
	c, err := client.DialContext(ctx, options)
	if err != nil {
		return out, fmt.Errorf("connect to Temporal: %w", err)
	}
	defer c.Close()
	var stages []float64
	for _, t := range all {
		for step := 1; t.Lag > 0 && step <= t.Steps; step++ {
			took, err := tripsOf(ctx, c, workflows.StepWorkflowID(t.Run, step), api.PublishPolicy)
			if err != nil {
				return out, err
			}
			stages = append(stages, took...)
		}
	}
	if len(stages) == 0 {
		return out, errors.New("no trial with a lag has published a policy")
	}
	bares, err := bareTrips(ctx, c)
	return roundTrips{Stage: bench.Median(stages), Bare: bench.Median(bares)}, err
}

// bareTrips runs bare activities.
func bareTrips(ctx context.Context, c client.Client) ([]float64, error) {
	w := worker.New(c, bareQueue, worker.Options{LocalActivityWorkerOnly: true})
	w.RegisterWorkflow(bare)
	a := worker.New(c, bareQueue+"-activities", worker.Options{DisableWorkflowWorker: true})
	a.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: bareName})
	for _, one := range []worker.Worker{w, a} {
		if err := one.Start(); err != nil {
			return nil, fmt.Errorf("start a worker of bare activities: %w", err)
		}
		defer one.Stop()
	}
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: bareQueue, TaskQueue: bareQueue}, bare)
	if err != nil {
		return nil, fmt.Errorf("start bare activities: %w", err)
	}
	if err := run.Get(ctx, nil); err != nil {
		return nil, fmt.Errorf("run bare activities: %w", err)
	}
	return tripsOf(ctx, c, bareQueue, bareName)
}

// tripsOf returns how long the activities of a name took in a workflow, in milliseconds: from the event of an
// activity's scheduling to the end of the workflow task that has its result.
func tripsOf(ctx context.Context, c client.Client, id, name string) (out []float64, err error) {
	open := map[int64]time.Time{} // scheduled activities, by event
	var ended []time.Time         // scheduling of those whose result no workflow task has taken
	events := c.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("read the history of %s: %w", id, err)
		}
		at := e.GetEventTime().AsTime()
		switch e.GetEventType() {
		case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			if e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == name {
				open[e.GetEventId()] = at
			}
		case enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
			if began, ok := open[e.GetActivityTaskCompletedEventAttributes().GetScheduledEventId()]; ok {
				ended = append(ended, began)
			}
		case enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			for _, began := range ended {
				out = append(out, float64(at.Sub(began))/float64(time.Millisecond))
			}
			ended = nil
		}
	}
	return out, nil
}
