package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Work that no step waits for starts once the next step has begun to sample, and all of it is done in the end.
func TestTimesAreRecordedWhileTheNextStepRuns(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 3, Shards: 1, MaxTurns: 1})
	var order []string
	note := func(what string, step int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		order = append(order, what+" "+string(rune('0'+step)))
	}
	handle(f, api.SelectPrompts, func(in api.PromptsInput) (api.Done, error) {
		note("prompts", in.Step)
		return api.Done{Manifest: ref("prompts", in.Step)}, nil
	})
	handle(f, api.RecordTimings, func(in api.RecordTimingsInput) (api.Done, error) {
		if in.Part == "step" {
			note("times", in.Step)
		}
		return api.Done{}, nil
	})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	at := map[string]int{}
	for i, what := range order {
		at[what] = i
	}
	require.Len(t, order, 6, "%v", order)
	require.Less(t, at["prompts 2"], at["times 1"], "%v", order)
	require.Less(t, at["prompts 3"], at["times 2"], "%v", order)
}
