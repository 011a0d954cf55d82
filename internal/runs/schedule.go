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
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

// Overlaps says what a schedule does when a run is due while the previous one still goes on.
var Overlaps = map[string]enumspb.ScheduleOverlapPolicy{
	"skip":   enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,         // it is left out
	"buffer": enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE,   // it starts when the previous one ends
	"cancel": enumspb.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER, // the previous one is cancelled first
	"allow":  enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL,    // both run
}

// Schedule is a schedule that starts runs.
type Schedule struct {
	Name  string
	Start workflows.ScheduledInput
	// Recipe is that of the runs.
	Recipe *recipes.Resolved
	// Evaluates is the policy that is evaluated, RUN or RUN@STEP; "" for a training.
	Evaluates string
	Crons     []string      // cron expressions, or
	Every     time.Duration // an interval
	Zone      string        // time zone of the cron expressions; "" = UTC
	Overlap   string        // a name of Overlaps
	Paused    bool
	Priority  temporal.Priority
}

// Check refuses a schedule that could start no run.
func (s Schedule) Check(now time.Time) error {
	if err := schema.CheckRunID(s.Name); err != nil {
		return badinput.Errorf("NAME: %w", err)
	}
	if !strings.Contains(s.Start.Name, workflows.NameTime) && !strings.Contains(s.Start.Name, workflows.NameDate) {
		return badinput.Errorf("--run-id: must have %s or %s in it, so that every run gets a name of its own, got %q",
			workflows.NameTime, workflows.NameDate, s.Start.Name)
	}
	if err := schema.CheckRunID(s.Start.RunAt(now)); err != nil {
		return badinput.Errorf("--run-id: %w", err)
	}
	if _, ok := Overlaps[s.Overlap]; !ok {
		return badinput.Errorf("--overlap: must be skip, buffer, cancel or allow, got %q", s.Overlap)
	}
	if (len(s.Crons) == 0) == (s.Every == 0) {
		return badinput.Errorf("--cron, --every: give one of them")
	}
	if s.Every != 0 && s.Every < time.Second {
		return badinput.Errorf("--every: must be ≥ 1s, got %s", s.Every)
	}
	if s.Zone != "" && len(s.Crons) == 0 {
		return badinput.Errorf("--time-zone: belongs to --cron")
	}
	return nil
}

// asked is what the audit log says about the schedule.
func (a Schedule) asked() any {
	out := struct {
		Schedule  string   `json:"schedule"`
		RunID     string   `json:"run_id"`
		Recipe    string   `json:"recipe"`
		Digest    string   `json:"digest"`
		Evaluates string   `json:"evaluates,omitempty"` // a run, or a run's step
		Crons     []string `json:"crons,omitempty"`
		Every     string   `json:"every,omitempty"`
		Zone      string   `json:"time_zone,omitempty"`
		Overlap   string   `json:"overlap"`
		Paused    bool     `json:"paused,omitempty"`
	}{Schedule: a.Name, RunID: a.Start.Name, Recipe: a.Start.Recipe, Digest: a.Start.Digest, Evaluates: a.Evaluates,
		Crons: a.Crons, Zone: a.Zone, Overlap: a.Overlap, Paused: a.Paused}
	if a.Every > 0 {
		out.Every = a.Every.String()
	}
	return out
}

// CreateSchedule creates a schedule. It refuses a name that another one has.
func (s *Session) CreateSchedule(ctx context.Context, a Schedule) error {
	if err := a.Check(time.Now()); err != nil {
		return err
	}
	a.Start.Recipe, a.Start.Digest = a.Recipe.Recipe.Name, a.Recipe.Digest
	spec := client.ScheduleSpec{CronExpressions: a.Crons, TimeZoneName: a.Zone}
	if a.Every > 0 {
		spec.Intervals = []client.ScheduleIntervalSpec{{Every: a.Every}}
	}
	if err := s.Note(ctx, schema.NoRun, "schedule create", a.asked()); err != nil {
		return err
	}
	if len(a.Recipe.Recipe.Privileged()) > 0 {
		if err := s.confirm(ctx, schema.NoRun, a.Recipe.Digest); err != nil {
			return err
		}
	}
	_, err := s.Temporal.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: a.Name, Spec: spec, Overlap: Overlaps[a.Overlap], Paused: a.Paused,
		Action: &client.ScheduleWorkflowAction{
			ID: "schedule/" + a.Name, Workflow: workflows.ScheduledRunName, Args: []any{a.Start},
			TaskQueue: workflows.QueueCPU, StaticSummary: "schedule " + a.Name, Priority: a.Priority,
		},
	})
	var bad *serviceerror.InvalidArgument
	switch {
	case errors.Is(err, temporal.ErrScheduleAlreadyRunning):
		return badinput.Errorf("there is a schedule %s already; ropewalk schedule delete %s removes it", a.Name, a.Name)
	case errors.As(err, &bad):
		return badinput.Errorf("--cron, --every, --time-zone: %s", bad.Message)
	case err != nil:
		return fmt.Errorf("create the schedule %s: %w", a.Name, err)
	}
	return nil
}

// Planned is a schedule as the server has it.
type Planned struct {
	Name    string     `json:"name"`
	Paused  bool       `json:"paused"`
	Note    string     `json:"note,omitempty"` // why it is paused
	Next    *time.Time `json:"next"`           // nil if nothing is due
	Started []Firing   `json:"started"`        // the latest, the newest last
}

// Firing is one time at which a schedule started a run.
type Firing struct {
	Due      time.Time `json:"due"`
	Workflow string    `json:"workflow_id"` // its details name the run
}

// Schedules lists the schedules that start runs, by name.
func (s *Session) Schedules(ctx context.Context) ([]Planned, error) {
	all, err := s.Temporal.ScheduleClient().List(ctx, client.ScheduleListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	out := []Planned{}
	for all.HasNext() {
		e, err := all.Next()
		if err != nil {
			return nil, fmt.Errorf("list schedules: %w", err)
		}
		if e.WorkflowType.Name != workflows.ScheduledRunName {
			continue // another program's
		}
		p := Planned{Name: e.ID, Paused: e.Paused, Started: []Firing{}}
		if e.Paused {
			p.Note = e.Note
		}
		if len(e.NextActionTimes) > 0 && !e.Paused {
			p.Next = &e.NextActionTimes[0]
		}
		for _, a := range e.RecentActions {
			f := Firing{Due: a.ScheduleTime}
			if a.StartWorkflowResult != nil {
				f.Workflow = a.StartWorkflowResult.WorkflowID
			}
			p.Started = append(p.Started, f)
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Planned) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// ChangeSchedule pauses, resumes, triggers or deletes a schedule that starts runs. The verb says which.
func (s *Session) ChangeSchedule(ctx context.Context, name, verb string,
	change func(context.Context, client.ScheduleHandle) error) error {
	handle := s.Temporal.ScheduleClient().GetHandle(ctx, name)
	d, err := handle.Describe(ctx)
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return badinput.Errorf("there is no schedule %q; ropewalk schedule list lists them", name)
	}
	if err != nil {
		return fmt.Errorf("look up the schedule %s: %w", name, err)
	}
	action, ok := d.Schedule.Action.(*client.ScheduleWorkflowAction)
	if !ok || action.Workflow != workflows.ScheduledRunName {
		return badinput.Errorf("the schedule %s starts no runs: it is another program's", name)
	}
	if err := s.Note(ctx, schema.NoRun, "schedule "+verb, map[string]any{"schedule": name}); err != nil {
		return err
	}
	if err := change(ctx, handle); err != nil {
		return fmt.Errorf("change the schedule %s: %w", name, err)
	}
	return nil
}
