package monitor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

// openRuns finds the runs that have not ended.
const openRuns = workflows.RunsQuery + ` AND ExecutionStatus = "Running"`

// mostListed bounds the open runs that are counted.
const mostListed = 2000

// asked is how many runs are asked at once.
const asked = 4

// run is one open run.
type run struct {
	id, workflow, state, stage, failure string
	step                                int
	started                             time.Time
	heldOut                             *float64 // latest success on held-out problems, a share
	moved                               time.Time
	// figures is what the run itself says; nil if no worker answered for it.
	figures *workflows.Progress
}

func (m *Monitor) lookAtRuns(ctx context.Context, s *snapshot) error {
	all, err := m.list(ctx)
	if err != nil {
		return err
	}
	s.open, s.states = len(all), map[string]int{}
	for _, r := range all {
		s.states[r.state]++
	}
	slices.SortStableFunc(all, func(a, b run) int { // the server lists the newest first
		return cmp.Compare(rank(a), rank(b))
	})
	s.runs = all[:min(len(all), m.o.MostRuns)]
	seen := make([]string, len(s.runs))
	err = rescue.Each(ctx, asked, len(s.runs), func(ctx context.Context, i int) error {
		seen[i] = m.ask(ctx, &s.runs[i])
		return nil
	})
	if err != nil {
		return err
	}
	m.move(s, seen)
	return nil
}

func rank(r run) int {
	if r.state == schema.StateParked {
		return 0
	}
	return 1
}

// list reads the open runs, the newest first.
func (m *Monitor) list(ctx context.Context) ([]run, error) {
	request := &workflowservice.ListWorkflowExecutionsRequest{Namespace: m.o.Namespace, Query: openRuns, PageSize: 200}
	var all []run
	for len(all) < mostListed {
		page, err := m.o.Temporal.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("list the open runs: %w", err)
		}
		for _, info := range page.GetExecutions() {
			all = append(all, runOf(info))
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			break
		}
	}
	return all, nil
}

// runOf reads a run from its workflow's search attributes.
func runOf(info *workflowpb.WorkflowExecutionInfo) run {
	fields := info.GetSearchAttributes().GetIndexedFields()
	r := run{id: info.GetExecution().GetWorkflowId(), workflow: info.GetType().GetName(),
		state: attribute[string](fields["RunState"]), stage: attribute[string](fields["Stage"]),
		failure: attribute[string](fields["FailureKind"]), step: int(attribute[int64](fields["Step"])),
		started: attribute[time.Time](fields["RunStarted"])}
	if r.started.IsZero() {
		r.started = info.GetStartTime().AsTime()
	}
	if r.state == "" {
		r.state = schema.StateRunning
	}
	if fields["Success"] != nil {
		r.heldOut = new(attribute[float64](fields["Success"]))
	}
	return r
}

// attribute decodes a search attribute; the zero value if it is not set.
func attribute[T any](p *commonpb.Payload) (v T) {
	var decoded *T
	if p == nil || converter.GetDefaultDataConverter().FromPayload(p, &decoded) != nil || decoded == nil {
		return v
	}
	return *decoded
}

// ask reads a run's figures and returns what changes when the run moves on. A run that no worker answers for has no
// figures.
func (m *Monitor) ask(ctx context.Context, r *run) string {
	p, err := runs.ProgressOf(ctx, m.o.Temporal, r.id)
	if err != nil {
		return fmt.Sprint(r.state, r.step, r.stage)
	}
	r.figures = &p
	w := runs.Working(ctx, m.o.Temporal, p, m.o.Now())
	if w.Failure != "" { // trying the same again is no progress
		return fmt.Sprint(r.state, r.step, r.stage)
	}
	return fmt.Sprint(r.state, r.step, r.stage, p.Stage, p.Step, p.Evaluating, w.Activity, w.Done)
}

// move notes when each run last moved on. A run that is seen for the first time moves now.
func (m *Monitor) move(s *snapshot, seen []string) {
	now := map[string]progress{}
	for i := range s.runs {
		r := &s.runs[i]
		p, known := m.progress[r.id]
		if !known || p.seen != seen[i] {
			p = progress{seen[i], s.at}
		}
		now[r.id], r.moved = p, p.since
	}
	m.progress = now
}
