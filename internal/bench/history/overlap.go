package history

import (
	"cmp"
	"context"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
)

// Overlap says how much of a run's time the activities of one type take, from their start on a worker to their end.
type Overlap struct {
	Activity string `json:"activity"`
	Count    int    `json:"count"`
	// Seconds are those in which at least one of them ran. In those of Alone, no activity of another type ran: so much
	// shorter would the run be without them.
	Seconds float64 `json:"seconds"`
	Alone   float64 `json:"alone_seconds"`
}

// Overlaps returns the overlap of each type of activity in a finished run and its children, the longest first.
func Overlaps(ctx context.Context, h Histories, run string) ([]Overlap, error) {
	r := &running{counts: map[string]int{}}
	for execution, more := "", true; more; more = execution != "" {
		var err error
		if execution, err = r.read(ctx, h, &commonpb.WorkflowExecution{WorkflowId: run, RunId: execution}); err != nil {
			return nil, err
		}
	}
	for i := 0; i < len(r.children); i++ { // which have children, too
		if _, err := r.read(ctx, h, r.children[i]); err != nil {
			return nil, err
		}
	}
	return r.overlaps(), nil
}

// running collects when activities began and ended.
type running struct {
	changes  []change
	counts   map[string]int
	children []*commonpb.WorkflowExecution
}

// change is the start (by 1) or the end (by −1) of an activity.
type change struct {
	at       time.Time
	activity string
	by       int
}

// read reads one execution and returns the one that it continues.
func (r *running) read(ctx context.Context, h Histories, w *commonpb.WorkflowExecution) (earlier string, err error) {
	names, began := map[int64]string{}, map[int64]time.Time{}
	err = each(ctx, h, w.GetWorkflowId(), w.GetRunId(), func(e *historypb.HistoryEvent) {
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			names[e.GetEventId()] = a.GetActivityType().GetName()
		}
		if a := e.GetActivityTaskStartedEventAttributes(); a != nil {
			began[a.GetScheduledEventId()] = e.GetEventTime().AsTime()
		}
		if a := e.GetWorkflowExecutionStartedEventAttributes(); a != nil {
			earlier = a.GetContinuedExecutionRunId()
		}
		if a := e.GetChildWorkflowExecutionStartedEventAttributes(); a != nil {
			r.children = append(r.children, a.GetWorkflowExecution())
		}
		if id, ok := ended(e); ok && !began[id].IsZero() {
			name := names[id]
			r.counts[name]++
			r.changes = append(r.changes, change{began[id], name, 1}, change{e.GetEventTime().AsTime(), name, -1})
		}
	})
	return earlier, err
}

// ended returns the activity that an event ends, by the event that scheduled it.
func ended(e *historypb.HistoryEvent) (id int64, ok bool) {
	switch e.GetEventType() {
	case enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		return e.GetActivityTaskCompletedEventAttributes().GetScheduledEventId(), true
	case enums.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		return e.GetActivityTaskFailedEventAttributes().GetScheduledEventId(), true
	case enums.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		return e.GetActivityTaskTimedOutEventAttributes().GetScheduledEventId(), true
	case enums.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		return e.GetActivityTaskCanceledEventAttributes().GetScheduledEventId(), true
	}
	return 0, false
}

// overlaps goes through the changes in the order of their times.
func (r *running) overlaps() (out []Overlap) {
	slices.SortStableFunc(r.changes, func(a, b change) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(b.by, a.by))
	})
	of, now := map[string]*Overlap{}, map[string]int{}
	for i, c := range r.changes {
		if i > 0 {
			passed := c.at.Sub(r.changes[i-1].at).Seconds()
			for name := range now {
				of[name].Seconds += passed
				if len(now) == 1 {
					of[name].Alone += passed
				}
			}
		}
		if of[c.activity] == nil {
			of[c.activity] = &Overlap{Activity: c.activity, Count: r.counts[c.activity]}
		}
		if now[c.activity] += c.by; now[c.activity] == 0 {
			delete(now, c.activity)
		}
	}
	for _, o := range of {
		out = append(out, *o)
	}
	slices.SortFunc(out, func(a, b Overlap) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Activity, b.Activity))
	})
	return out
}
