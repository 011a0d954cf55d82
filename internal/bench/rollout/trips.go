package rollout

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// RoundTrips compares a stage without work with an activity that does nothing. The stage is publish of a run with
// pipeline.max_staleness, which loads no policy: what it does is what every stage does, and the commit of the step's
// head.
type RoundTrips struct{ Stage, Bare float64 } // medians, in milliseconds

// MostStage is the most that a stage without work may take, in trips of a bare activity.
const MostStage = 5

// Ratio is how many times as long as a bare activity the stage takes.
func (r RoundTrips) Ratio() float64 { return r.Stage / r.Bare }

// roundTrips runs bare activities on a server that is idle otherwise, and compares them with the stage of a run with
// pipeline.max_staleness on the same server.
func roundTrips(ctx context.Context, c client.Client, run string) (out RoundTrips, err error) {
	stages, err := published(ctx, c, run)
	if err != nil {
		return out, err
	}
	if len(stages) == 0 {
		return out, fmt.Errorf("run %s has published no policy", run)
	}
	bares, err := bareTrips(ctx, c)
	if err != nil {
		return out, err
	}
	return RoundTrips{Stage: bench.Median(stages), Bare: bench.Median(bares)}, nil
}

// published are the trips of publish in the steps of a run.
func published(ctx context.Context, h Histories, run string) (out []float64, err error) {
	steps, _, err := stepsOf(ctx, h, run)
	for _, step := range steps {
		trips, err := Trips(ctx, h, step.GetWorkflowId(), api.PublishPolicy)
		if err != nil {
			return nil, err
		}
		out = append(out, trips...)
	}
	return out, err
}

// Trips returns how long the activities of a name took in a workflow, in milliseconds: from the event of an activity's
// scheduling to the end of the workflow task that has its result.
func Trips(ctx context.Context, h Histories, workflow, name string) (out []float64, err error) {
	open := map[int64]time.Time{} // scheduled activities, by event
	var ended []time.Time         // scheduling of those whose result no workflow task has taken
	err = each(ctx, h, workflow, "", func(e *historypb.HistoryEvent) {
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
	})
	return out, err
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
	return Trips(ctx, c, bareQueue, bareName)
}
