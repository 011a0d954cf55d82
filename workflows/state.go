package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// noteWithin bounds the writing of a note: a store that is away, which may be why the run waits, must not hold it up.
const noteWithin = 30 * time.Second

// retryNote gives up soon, since only listings read notes.
var retryNote = &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumAttempts: 4}

// states shows a run's state in Temporal's UI and notes it in the record.
type states struct {
	run     string
	pending workflow.Future // the latest note; nil if there is none
}

// show sets the search attribute.
func (s states) show(ctx workflow.Context, now string) {
	// Upserting fails only for keys that cannot be encoded; this is a constant.
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrRunState.ValueSet(now))
}

// enter shows the state and notes it. Only the end of the execution waits for the note. If it cannot be written,
// listings that ask no server show the state before.
func (s *states) enter(ctx workflow.Context, now string, kind, reason string) {
	s.show(ctx, now)
	s.pending = s.note(ctx, now, kind, reason)
}

// settle waits for the latest note.
func (s *states) settle(ctx workflow.Context) {
	if s.pending == nil {
		return
	}
	if err := s.pending.Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("note the run's state", "run", s.run, "error", err)
	}
	s.pending = nil
}

// leave is enter for a workflow that then ends: it waits for the note.
func (s *states) leave(ctx workflow.Context, now string, kind, reason string) {
	s.enter(ctx, now, kind, reason)
	s.settle(ctx)
}

func (s states) note(ctx workflow.Context, now string, kind, reason string) workflow.Future {
	o := options(nil, api.NoteState, s.run+" is "+strings.ReplaceAll(now, "_", " "))
	o.ScheduleToCloseTimeout, o.RetryPolicy = noteWithin, retryNote
	in := api.StateInput{Run: s.run, State: now, Kind: kind, Reason: cell(reason),
		At: workflow.Now(ctx).UnixMicro()}
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), api.NoteState, in)
}

// success shows the latest success on held-out problems in a search attribute, as a share.
func (s states) success(ctx workflow.Context, e api.EvaluationSummary) {
	if e.N > 0 {
		_ = workflow.UpsertTypedSearchAttributes(ctx, attrSuccess.ValueSet(e.Success))
	}
}

// began sets the attributes that a run has from its first execution on. Later executions have their own start and
// duration in the UI.
func (s states) began(ctx workflow.Context, started time.Time) {
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrRunState.ValueSet(schema.StateRunning),
		attrRunStarted.ValueSet(started))
}

// ended is the state of a run that began with a number of steps and has taken all.
func ended(steps, asked int) string {
	if steps < asked {
		return schema.StateStoppedEarly
	}
	return schema.StateDone
}

// reasonOf lists failures, one a line.
func reasonOf(all []StageFailure) string {
	var lines []string
	for _, f := range all {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "; ")
}

// Totals count the work of all finished steps since the run was started or resumed.
type Totals struct {
	Steps        int     `json:"steps"`
	Trajectories int     `json:"trajectories"`
	ToolCalls    int     `json:"tool_calls"`
	Tokens       int64   `json:"tokens"`
	Seconds      float64 `json:"seconds"` // of the steps
}

func (t *Totals) add(l StepLine) {
	t.Steps++
	t.Trajectories += l.Trajectories + l.Excluded
	t.ToolCalls += l.ToolCalls
	t.Tokens += l.Tokens
	t.Seconds += l.Seconds
}

// String is one line for people.
func (t Totals) String() string {
	return fmt.Sprintf("%d steps in %s: %d trajectories, %d tool calls, %d tokens", t.Steps, wholeSeconds(t.Seconds),
		t.Trajectories, t.ToolCalls, t.Tokens)
}

// wholeSeconds is a duration for people.
func wholeSeconds(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second)
}
