package workflows

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

func timesAt(step int, part string, timings ...api.Timing) api.RecordTimingsInput {
	return api.RecordTimingsInput{Scope: api.Scope{Run: "run-1", Step: step, Config: ref("config")}, Part: part,
		Timings: timings}
}

// A workflow that was ended answers with the measured times that it had not recorded, and with no others.
func TestAnEndedRunKnowsItsUnrecordedTimes(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 3, Shards: 1, MaxTurns: 1})
	second := make(chan struct{}) // the times of step 2 are to be recorded, so step 1's are
	handle(f, api.UpdatePolicy, func(in api.UpdateInput) (api.Updated, error) {
		if in.Step == 3 {
			<-second
			f.env.CancelWorkflow()
		}
		out, err := f.update(in)
		out.Timing = api.Timing{Stage: schema.StageUpdate, Start: int64(in.Step), End: int64(in.Step) + 1}
		return out, err
	})
	var tried sync.Once
	handle(f, api.RecordTimings, func(in api.RecordTimingsInput) (api.Done, error) {
		if in.Step == 2 {
			tried.Do(func() { close(second) })
			return api.Done{}, errors.New("the store is away")
		}
		return api.Done{}, nil
	})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.Error(t, f.env.GetWorkflowError())
	value, err := f.env.QueryWorkflow(QueryUnrecorded)
	require.NoError(t, err)
	var got []api.RecordTimingsInput
	require.NoError(t, value.Get(&got))
	require.Len(t, got, 1)
	require.Equal(t, 2, got[0].Step)
	require.Equal(t, "step", got[0].Part)
	require.Contains(t, got[0].Timings, api.Timing{Stage: schema.StageUpdate, Start: 2, End: 3})
}

// A run that is resumed records the times that its ended workflow knew as they were, notes those of other finished
// steps as lost, and merges what the recipe wants merged. The step that was not done records its own times.
func TestAResumedRunMakesUpForWhatItWasEndedBefore(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 3, Shards: 1, MaxTurns: 1, Compact: true})
	f.next = 3
	handle(f, api.PrepareRun, func(in api.PrepareInput) (api.Prepared, error) {
		out, err := f.prepare(in)
		out.Untimed, out.Uncompacted = []int{1, 2}, []int{1, 2}
		return out, err
	})
	recorded := map[int][]api.RecordTimingsInput{}
	handle(f, api.RecordTimings, func(in api.RecordTimingsInput) (api.Done, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		recorded[in.Step] = append(recorded[in.Step], in)
		return api.Done{}, nil
	})
	var compacted []int
	handle(f, api.CompactStep, func(in api.CompactInput) (api.Compacted, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		compacted = append(compacted, in.Step)
		if len(recorded[in.Step]) == 0 {
			t.Errorf("step %d is compacted before its times are recorded", in.Step)
		}
		return api.Compacted{}, nil
	})
	known := timesAt(2, "step", api.Timing{Stage: schema.StageUpdate, Start: 2, End: 3})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Resume: true, Unrecorded: []api.RecordTimingsInput{
		known, timesAt(3, "step", api.Timing{Stage: schema.StageRollout, Start: 4, End: 5})}})
	require.NoError(t, f.env.GetWorkflowError())
	lost := timesAt(1, "step")
	lost.Lost = true
	require.Equal(t, []api.RecordTimingsInput{lost}, recorded[1])
	require.Equal(t, []api.RecordTimingsInput{known}, recorded[2])
	require.Len(t, recorded[3], 2, "the step's own times, and the last evaluation's")
	for _, in := range recorded[3] {
		require.NotContains(t, in.Timings, api.Timing{Stage: schema.StageRollout, Start: 4, End: 5})
	}
	require.ElementsMatch(t, []int{1, 2, 3}, compacted)
}
