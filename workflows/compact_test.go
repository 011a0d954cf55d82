package workflows

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// TestEveryStepIsCompactedOnceItsTimesAreRecorded checks the order of the activities alongside the steps.
func TestEveryStepIsCompactedOnceItsTimesAreRecorded(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 7, Shards: 1, MaxTurns: 1, EvaluateEvery: 2, Compact: true})
	recorded, compacted := map[int]int{}, []int{}
	handle(f, api.RecordTimings, func(in api.RecordTimingsInput) (api.Done, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		recorded[in.Step]++
		return api.Done{}, nil
	})
	handle(f, api.CompactStep, func(in api.CompactInput) (api.Compacted, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		want := 1
		if in.Step%2 == 0 || in.Step == 7 {
			want = 2 // the step's times, and those of the evaluation after it
		}
		if recorded[in.Step] != want {
			t.Errorf("step %d is compacted after %d of %d recordings", in.Step, recorded[in.Step], want)
		}
		compacted = append(compacted, in.Step)
		return api.Compacted{}, nil
	})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.ElementsMatch(t, []int{1, 2, 3, 4, 5, 6, 7}, compacted)
}

// TestAFailedCompactionFailsNothing checks that a run neither parks nor fails for the sake of its number of files.
func TestAFailedCompactionFailsNothing(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 3, Shards: 1, MaxTurns: 1, Compact: true})
	handle(f, api.CompactStep, func(api.CompactInput) (api.Compacted, error) {
		return api.Compacted{}, temporal.NewNonRetryableApplicationError("the disk is full", "x", errors.New("x"))
	})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, 3, f.calls[api.CompactStep])
}

func TestNoStepIsCompactedUnlessTheRecipeAsksForIt(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 3, Shards: 1, MaxTurns: 1})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Zero(t, f.calls[api.CompactStep])
}
