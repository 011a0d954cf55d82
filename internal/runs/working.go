package runs

import (
	"context"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/workflows"
)

// workEvery is how many polls of a followed run pass between two looks at its activities.
const workEvery = 2

// shardsSeen is how many shards of a step are looked at.
const shardsSeen = 4

// Work is what a run's activity is doing.
type Work struct {
	Activity    string
	Done, Total int    // from its heartbeat; 0 where it counts nothing
	Failure     string // of its last attempt; "" for the first one
	Next        time.Duration
}

// Retrying says why the last attempt failed and when the next one starts; "" for a first attempt.
func (w Work) Retrying() string {
	if w.Failure == "" {
		return ""
	}
	if w.Next <= 0 {
		return "retrying: " + w.Failure
	}
	return fmt.Sprintf("retrying: %s (%d s)", w.Failure, int(w.Next.Round(time.Second).Seconds()))
}

// Describer is the part of Temporal's client that shows activities.
type Describer interface {
	// DescribeWorkflowExecution describes an execution, the latest if it is empty.
	DescribeWorkflowExecution(
		ctx context.Context, run, execution string,
	) (*workflowservice.DescribeWorkflowExecutionResponse, error)
}

// Working finds what a run is doing: an activity that is tried again comes first, then the one with most work. It
// looks at the run, the children that are its steps and a few of the steps' shards. A workflow that cannot be described
// now is left out.
func Working(ctx context.Context, temporal Describer, p workflows.Progress, now time.Time) Work {
	ids := []string{p.Run}
	var best Work
	for i := 0; i < len(ids); i++ {
		d, err := temporal.DescribeWorkflowExecution(ctx, ids[i], "")
		if err != nil {
			continue
		}
		for _, a := range d.GetPendingActivities() {
			w := workOf(a, now)
			if w.Failure != "" {
				return w
			}
			if best.Activity == "" || w.Total > best.Total {
				best = w
			}
		}
		for _, c := range d.GetPendingChildren() {
			if len(ids) < 3+shardsSeen {
				ids = append(ids, c.GetWorkflowId())
			}
		}
	}
	return best
}

func workOf(a *workflowpb.PendingActivityInfo, now time.Time) Work {
	w := Work{Activity: a.GetActivityType().GetName()}
	w.Done, w.Total = counted(a.GetHeartbeatDetails())
	if f := a.GetLastFailure(); f != nil && a.GetAttempt() > 1 {
		w.Failure = shortFailure(f.GetMessage())
		if at := a.GetNextAttemptScheduleTime(); at != nil {
			w.Next = at.AsTime().Sub(now)
		}
	}
	return w
}

// counted reads done and total from the details of a heartbeat.
func counted(details *commonpb.Payloads) (done, total int) {
	payloads := details.GetPayloads()
	if len(payloads) < 2 {
		return 0, 0
	}
	from := converter.GetDefaultDataConverter().FromPayload
	if from(payloads[0], &done) != nil || from(payloads[1], &total) != nil {
		return 0, 0
	}
	return done, total
}

// shortFailure names what a person can act on, or the failure's first line.
func shortFailure(text string) string {
	for _, known := range []struct{ part, words string }{
		{store.ErrNoSpace.Error(), "disk full"}, {"no space left on device", "disk full"}, {"disk full", "disk full"},
		{store.ErrUnreachable.Error(), "store unreachable"},
		{"heartbeat timeout", "its worker does not answer"},
	} {
		if strings.Contains(strings.ToLower(text), known.part) {
			return known.words
		}
	}
	line, _, _ := strings.Cut(text, "\n")
	const most = 60
	if runes := []rune(line); len(runes) > most {
		line = string(runes[:most]) + "…"
	}
	return line
}
