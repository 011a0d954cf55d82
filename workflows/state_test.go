package workflows

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// statesOf lists the noted states, with the kinds of failures.
func (f *fakes) statesOf() (out []string) {
	for _, n := range f.noted {
		s := n.State
		if n.Kind != "" {
			s += " " + n.Kind
		}
		out = append(out, s)
	}
	return out
}

func TestARunNotesThatItIsParkedAndGoesOn(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 2, Shards: 2, MaxTurns: 1})
	broken(f, api.Resample, 1, func(in api.StageInput) bool { return in.Step == 2 }, f.resample)
	f.after(time.Hour, UpdateRetry, RetryInput{})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, []string{"parked disk_full", "running"}, f.statesOf())
	require.Equal(t, "resample: Resample: no room on the device", f.noted[0].Reason)
	require.Positive(t, f.noted[0].At)
}

func TestARunNotesThatItIsPausedAndThatItFails(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 3, Shards: 1, MaxTurns: 1})
	broken(f, api.Resample, 1, func(in api.StageInput) bool { return in.Step == 2 }, f.resample)
	f.slowly()
	f.after(30*time.Second, UpdatePause)
	f.after(time.Hour, UpdateUnpause)
	f.after(2*time.Hour, UpdateAbort)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.Error(t, f.env.GetWorkflowError())
	states := f.statesOf()
	require.Len(t, states, 4)
	require.Equal(t, "failed disk_full", states[3])
	// The other notes are written side by side; their times say which is the latest.
	require.ElementsMatch(t, []string{"paused", "running", "parked disk_full"}, states[:3])
	require.Contains(t, f.noted[3].Reason, "step 2: aborted: resample: Resample: no room on the device")
}

// A run that stops early says so; its asked steps, start and totals reach the last execution.
func TestContinueAsNewCarriesStartAndTotals(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: stepsPerHistory + 5, Shards: 1, MaxTurns: 1})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, f.env.GetWorkflowError(), &again)
	var in TrainRunInput
	require.NoError(t, json.Unmarshal(again.Input.Payloads[0].Data, &in))
	require.Equal(t, stepsPerHistory+5, in.Continued.Asked)
	require.Equal(t, stepsPerHistory, in.Continued.Totals.Steps)
	require.Positive(t, in.Continued.Totals.Trajectories)
	require.False(t, in.Continued.Started.IsZero())

	next := newFakes(t, api.Plan{Recipe: "r", Steps: stepsPerHistory + 5, Shards: 1, MaxTurns: 1})
	next.env.SetStartTime(in.Continued.Started.Add(time.Hour))
	next.env.ExecuteWorkflow(TrainRun, in)
	require.NoError(t, next.env.GetWorkflowError())
	p := progressOf(t, next)
	require.Equal(t, in.Continued.Started, p.Started)
	require.Equal(t, stepsPerHistory+5, p.Totals.Steps)
	require.GreaterOrEqual(t, p.Elapsed, time.Hour.Seconds(), "of the whole run, not of its last execution")
	require.LessOrEqual(t, p.Elapsed, next.env.Now().Sub(p.Started).Seconds())
	require.Contains(t, p.Markdown(), "](http://127.0.0.1:8377/"+p.Run+"/)", "the page of `ropewalk view`")
	require.Contains(t, p.Markdown(), fmt.Sprintf("Started %s; elapsed %s. 25 steps in ",
		p.Started.Format("2006-01-02 15:04 UTC"), wholeSeconds(p.Elapsed)))
}

func TestEndedEarly(t *testing.T) {
	require.Equal(t, "stopped_early", ended(3, 5))
	require.Equal(t, "done", ended(8, 5))
}
