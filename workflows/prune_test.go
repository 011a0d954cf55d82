package workflows

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// pruning fakes PruneCheckpoints and lists its inputs; fails decides which calls fail, counted from 1.
func (f *fakes) pruning(fails func(n int) error) *[]api.PruneInput {
	asked := &[]api.PruneInput{}
	handle(f, api.PruneCheckpoints, func(in api.PruneInput) (api.Pruned, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		*asked = append(*asked, in)
		if err := fails(len(*asked)); err != nil {
			return api.Pruned{}, err
		}
		out := api.Retention{Rule: &api.RetentionRule{}, Past: in.Step}
		if in.Retention != nil {
			out.Best = in.Retention.Best
		}
		out.Best = append(out.Best, in.Evaluated...)
		return api.Pruned{Retention: out}, nil
	})
	return asked
}

func never(int) error { return nil }

// Every pruning starts from the previous result plus the evaluations since; the last pruning is for the last step.
func TestPruningCarriesOnWhatItKnows(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 5, Shards: 1, MaxTurns: 1, EvaluateEvery: 2})
	asked := f.pruning(never)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	last := (*asked)[len(*asked)-1]
	require.Equal(t, 5, last.Step)
	require.Nil(t, (*asked)[0].Retention)
	var evaluated []int
	for i, in := range *asked {
		if i > 0 {
			require.Equal(t, (*asked)[i-1].Step, in.Retention.Past)
		}
		for _, e := range in.Evaluated {
			evaluated = append(evaluated, e.Step)
		}
	}
	require.Equal(t, []int{2, 4}, evaluated, "each is told of once")
}

// A pruning that fails for good neither parks nor fails the run. The details report it, and the next pruning does its
// work.
func TestAFailedPruningIsReported(t *testing.T) {
	broken := temporal.NewNonRetryableApplicationError("the store refuses to delete", "x", errors.New("x"))
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 3, Shards: 1, MaxTurns: 1})
	asked := f.pruning(func(int) error { return broken })
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, 3, (*asked)[len(*asked)-1].Step)
	require.Nil(t, (*asked)[len(*asked)-1].Retention)
	answer, err := f.env.QueryWorkflow(QueryProgress)
	require.NoError(t, err)
	var p Progress
	require.NoError(t, answer.Get(&p))
	require.Contains(t, p.Unpruned, "the store refuses to delete")
	require.Contains(t, p.Markdown(), "old checkpoints could not be deleted")

	mended := newFakes(t, api.Plan{Recipe: "r", Steps: 3, Shards: 1, MaxTurns: 1})
	mended.pruning(func(n int) error {
		if n == 1 {
			return broken
		}
		return nil
	})
	mended.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, mended.env.GetWorkflowError())
	answer, err = mended.env.QueryWorkflow(QueryProgress)
	require.NoError(t, err)
	p = Progress{}
	require.NoError(t, answer.Get(&p))
	require.Empty(t, p.Unpruned)
}

// No step waits for a pruning: one that does not end within the history leaves its work and its evaluations to the
// next history.
func TestNoStepWaitsForAPruning(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: stepsPerHistory + 1, Shards: 1, MaxTurns: 1, EvaluateEvery: 10})
	f.pruning(never)
	f.env.OnActivity(api.PruneCheckpoints, mock.Anything).After(24*time.Hour).Return(api.Pruned{}, nil)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, f.env.GetWorkflowError(), &again)
	var in TrainRunInput
	require.NoError(t, json.Unmarshal(again.Input.Payloads[0].Data, &in))
	require.Nil(t, in.Continued.Retention)
	require.Equal(t, []int{10, 20}, []int{in.Continued.Evaluated[0].Step, in.Continued.Evaluated[1].Step})

	second := newFakes(t, api.Plan{})
	asked := second.pruning(never)
	second.env.ExecuteWorkflow(TrainRun, in)
	require.NoError(t, second.env.GetWorkflowError())
	require.Equal(t, stepsPerHistory, (*asked)[0].Step)
	require.Len(t, (*asked)[0].Evaluated, 2)
}
