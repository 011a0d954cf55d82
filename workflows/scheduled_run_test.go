package workflows

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// scheduled runs a schedule's action that was due at a fixed time, and returns what was noted before its run started.
func scheduled(t *testing.T, f *fakes, in ScheduledInput, fails error) []api.DeedInput {
	t.Helper()
	var deeds []api.DeedInput
	handle(f, api.NoteDeed, func(in api.DeedInput) (api.Done, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.calls[api.PrepareRun] > 0 {
			t.Error("the run has started before")
		}
		deeds = append(deeds, in)
		return api.Done{}, fails
	})
	require.NoError(t, f.env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(
		attrScheduled.ValueSet(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), attrSchedule.ValueSet("nightly"))))
	f.env.ExecuteWorkflow(ScheduledRun, in)
	return deeds
}

// The record says which schedule starts a run, before it starts.
func TestAScheduledStartIsNoted(t *testing.T) {
	in := ScheduledInput{Name: "nightly-{date}", Train: &TrainRunInput{Recipe: "quickstart"}, Recipe: "quickstart",
		Digest: "abc"}
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 1, MaxTurns: 1})
	deeds := scheduled(t, f, in, nil)
	require.NoError(t, f.env.GetWorkflowError())
	require.Len(t, deeds, 1)
	require.Positive(t, deeds[0].At)
	deeds[0].At = 0
	require.Equal(t, api.DeedInput{Run: "nightly-20260102", Action: "start", Actor: "schedule nightly",
		With: map[string]string{"digest": "abc", "recipe": "quickstart", "workflow": TrainRunName}}, deeds[0])
	require.Equal(t, 1, f.calls[api.PublishPolicy])
}

func TestWhatCannotBeNotedIsNotStarted(t *testing.T) {
	in := ScheduledInput{Name: "nightly-{date}", Train: &TrainRunInput{Recipe: "quickstart"}}
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 1, MaxTurns: 1})
	deeds := scheduled(t, f, in, errors.New("not allowed"))
	require.ErrorContains(t, f.env.GetWorkflowError(), "not allowed")
	require.Len(t, deeds, attempts)
	require.Equal(t, map[string]string{"workflow": TrainRunName}, deeds[0].With)
	require.Zero(t, f.calls[api.PrepareRun])
}
