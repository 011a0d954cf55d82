package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// ForkRun continues as a TrainRun, which goes on after the shared steps.
func TestForkRunContinuesAsTheFork(t *testing.T) {
	f := newFakes(t, api.Plan{})
	f.env.ExecuteWorkflow(ForkRun, ForkInput{Run: "fork", Of: "run-1", Step: 3, From: "reward",
		Set: []string{"steps=5"}})
	next := continued(t, f, TrainRunName)
	require.Equal(t, TrainRunInput{Run: "fork", Set: []string{"steps=5"},
		Fork: &schema.ForkPoint{Run: "run-1", Step: 3}, ForkFrom: "reward"}, next)

	f = newFakes(t, api.Plan{Recipe: "r", Steps: 5, Shards: 1, MaxTurns: 1, EvaluateEvery: 1})
	handle(f, api.PrepareRun, func(in api.PrepareInput) (api.Prepared, error) {
		require.Equal(t, "run-1@3", in.ForkNote())
		require.Equal(t, "reward", in.ForkFrom)
		return api.Prepared{Plan: f.plan, NextStep: 4, Policy: &api.PolicyRef{Digest: "warm+1+2+3", Step: 3}},
			nil
	})
	var evaluated []int
	handle(f, api.Evaluate, func(in api.EvaluateInput) (api.Evaluated, error) {
		evaluated = append(evaluated, in.Step)
		return api.Evaluated{}, nil
	})
	f.env.ExecuteWorkflow(TrainRun, next)
	var out TrainRunResult
	require.NoError(t, f.env.GetWorkflowResult(&out))
	require.Equal(t, "warm+1+2+3+4+5", out.Policy.Digest)
	require.Equal(t, []int{api.InitStep, 3, 4, 5}, evaluated, "the activity finds those of the shared steps")

	f = newFakes(t, api.Plan{})
	f.env.ExecuteWorkflow(ForkRun, ForkInput{Run: "fork", Of: "Run 1", Step: 3})
	require.ErrorContains(t, f.env.GetWorkflowError(), `fork: run id "Run 1"`)
}
