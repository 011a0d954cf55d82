package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// afterSteps is the digest of the fakes' policy after a step.
func afterSteps(step int) string {
	digest := "warm"
	for s := range step {
		digest += fmt.Sprintf("+%d", s+1)
	}
	return digest
}

// watched are the policies that the steps of a run were sampled from, by step, and the order of what was done.
type watched struct {
	mu      sync.Mutex
	sampled map[int]map[string]int // how often, by step and policy
	order   []string
}

// watch makes the fakes note who samples, and take their time: a turn takes a second, an update a minute.
func (f *fakes) watch() *watched {
	w := &watched{sampled: map[int]map[string]int{}}
	handle(f, api.GenerateRollouts, func(in api.GenerateInput) (api.Generated, error) {
		w.mu.Lock()
		if w.sampled[in.Step] == nil {
			w.sampled[in.Step] = map[string]int{}
		}
		w.sampled[in.Step][in.Policy.Digest]++
		w.order = append(w.order, fmt.Sprint("sample ", in.Step))
		w.mu.Unlock()
		return f.generate(in)
	})
	handle(f, api.UpdatePolicy, func(in api.UpdateInput) (api.Updated, error) {
		w.mu.Lock()
		w.order = append(w.order, fmt.Sprint("update ", in.Step))
		w.mu.Unlock()
		return f.update(in)
	})
	return w
}

// A pipelined run samples each step from the policy that is k updates old, and samples it once.
func TestAPipelinedRunSamplesFromEarlierPolicies(t *testing.T) {
	for k := range 4 {
		f := newFakes(t, api.Plan{Recipe: "r", Steps: 6, Shards: 1, MaxTurns: 1, Staleness: k, EvaluateEvery: 4,
			PromptsAhead: true})
		f.toolTurns = 0
		w := f.watch()
		selected := 0 // steps whose prompts were there when their sampling began
		f.env.SetOnChildWorkflowStartedListener(
			func(info *workflow.Info, _ workflow.Context, args converter.EncodedValues) {
				var in TrainStepInput
				if info.WorkflowType.Name == "SampleStep" && args.Get(&in) == nil && in.Prompts != nil {
					selected++
				}
			})
		f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
		require.NoError(t, f.env.GetWorkflowError())
		var out TrainRunResult
		require.NoError(t, f.env.GetWorkflowResult(&out))
		require.Equal(t, afterSteps(6), out.Policy.Digest)
		for step := 1; step <= 6; step++ {
			require.Equal(t, map[string]int{afterSteps(max(step-1-k, 0)): 1}, w.sampled[step], "k %d, step %d", k, step)
		}
		require.Equal(t, 6, f.calls[api.UpdatePolicy])
		require.Equal(t, 6, f.calls[api.SelectPrompts])
		if k > 0 {
			require.Equal(t, 5, selected)
		}
		value, err := f.env.QueryWorkflow(QueryProgress)
		require.NoError(t, err)
		var p Progress
		require.NoError(t, value.Get(&p))
		for i, l := range p.Lines {
			require.Equal(t, min(k, i), l.Lag)
			require.Equal(t, 4, l.Trajectories, "the figures of the rollout are the step's")
		}
		require.Equal(t, k > 0, strings.Contains(p.Markdown(), "| lag |"))
	}
}

// The rollouts of the next steps begin before the update ends, and those of one version before those of the next.
func TestRolloutsRunWhileAStepUpdates(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 4, Shards: 1, MaxTurns: 1, Staleness: 1})
	f.toolTurns = 0
	w, sampled := f.watch(), make(chan struct{})
	handle(f, api.UpdatePolicy, func(in api.UpdateInput) (api.Updated, error) {
		if in.Step == 1 { // it does not end before the rollout of step 2 has begun
			select {
			case <-sampled:
			case <-time.After(hangs):
				return api.Updated{}, errors.New("step 2 is not sampled while step 1 updates")
			}
		}
		return f.update(in)
	})
	handle(f, api.GenerateRollouts, func(in api.GenerateInput) (api.Generated, error) {
		if in.Step == 2 {
			close(sampled)
		}
		w.mu.Lock()
		w.order = append(w.order, fmt.Sprint("sample ", in.Step))
		w.mu.Unlock()
		return f.generate(in)
	})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, []string{"sample 1", "sample 2", "sample 3", "sample 4"}, w.order)
}

// A resumed run knows the policies that its next steps are sampled from, and so does one that continues as new.
func TestAPipelinedRunGoesOnWithTheSamePolicies(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 5, Shards: 1, MaxTurns: 1, Staleness: 2})
	f.toolTurns, f.next = 0, 3
	w := f.watch()
	handle(f, api.PrepareRun, func(in api.PrepareInput) (api.Prepared, error) {
		p, err := f.prepare(in)
		p.Policy = &api.PolicyRef{Digest: afterSteps(2)}
		p.Earlier = []api.PolicyRef{{Digest: afterSteps(1)}}
		return p, err
	})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Resume: true})
	require.NoError(t, f.env.GetWorkflowError())
	for step := 3; step <= 5; step++ {
		require.Equal(t, map[string]int{afterSteps(step - 3): 1}, w.sampled[step], "step %d", step)
	}

	long := newFakes(t, api.Plan{Recipe: "r", Steps: stepsPerHistory + 3, Shards: 1, MaxTurns: 1, Staleness: 2})
	long.toolTurns = 0
	long.watch()
	long.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, long.env.GetWorkflowError(), &again)
	var in TrainRunInput
	require.NoError(t, json.Unmarshal(again.Input.Payloads[0].Data, &in))
	require.Len(t, in.Continued.Earlier, 2)
	second := newFakes(t, api.Plan{})
	second.toolTurns = 0
	w = second.watch()
	second.env.ExecuteWorkflow(TrainRun, in)
	require.NoError(t, second.env.GetWorkflowError())
	for step := stepsPerHistory + 1; step <= stepsPerHistory+3; step++ {
		require.Equal(t, map[string]int{afterSteps(step - 3): 1}, w.sampled[step], "step %d", step)
	}
}

// A rollout that fails ahead of its step does not stop the step that updates. Its own step then reports the failure,
// and the run parks as any other.
func TestARolloutThatFailsAheadParksAtItsStep(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 4, Shards: 1, MaxTurns: 1, Staleness: 1})
	f.toolTurns = 0
	f.watch()
	broken, failures := true, 0
	handle(f, api.ScoreRewards, func(in api.ScoreInput) (api.Scored, error) {
		if in.Step == 3 && broken {
			failures++
			return api.Scored{}, temporal.NewNonRetryableApplicationError("null reward", api.FailRefused, nil)
		}
		return f.score(in)
	})
	var parked Progress
	f.env.RegisterDelayedCallback(func() {
		value, err := f.env.QueryWorkflow(QueryProgress)
		if err == nil {
			err = value.Get(&parked)
		}
		require.NoError(t, err)
		broken = false
	}, time.Hour)
	retry := f.after(2*time.Hour, UpdateRetry, RetryInput{})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.NoError(t, retry.failed)
	require.NotNil(t, parked.Parked)
	require.Equal(t, 3, parked.Parked.Step)
	require.Len(t, parked.Lines, 2)
	require.Equal(t, 2, failures, "ahead, and by the step itself")
	require.Equal(t, 4, f.trained(t))
}

// Changed settings hold from the first step on whose sampling has not begun. A retry with other settings samples the
// step again, and those that were sampled ahead of it.
func TestAChangeDoesNotMixWithWhatWasSampledAhead(t *testing.T) {
	plan := api.Plan{Recipe: "r", Steps: 5, Shards: 1, MaxTurns: 1, Staleness: 1}
	f := newFakes(t, plan)
	f.toolTurns = 0
	var mu sync.Mutex
	made := map[int][]string{} // generation and recipe, by step
	handle(f, api.GenerateRollouts, func(in api.GenerateInput) (api.Generated, error) {
		mu.Lock()
		made[in.Step] = append(made[in.Step], fmt.Sprint(in.Gen, " ", in.Config.Key))
		mu.Unlock()
		return f.generate(in)
	})
	handle(f, api.UpdatePolicy, func(in api.UpdateInput) (api.Updated, error) {
		if in.Step == 2 && in.Gen == 0 {
			return api.Updated{}, temporal.NewNonRetryableApplicationError("non-finite", api.FailNonFinite, nil)
		}
		return f.update(in)
	})
	asked := f.amends(func(api.AmendInput) api.Plan { return plan })
	temperature, tokens := 0.9, 64
	early := f.after(time.Hour, UpdateSet, SetInput{Temperature: &temperature})
	retry := f.after(2*time.Hour, UpdateRetry, RetryInput{MaxTurnTokens: &tokens})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.NoError(t, early.failed)
	require.NoError(t, retry.failed)
	require.Equal(t, 4, (*asked)[0].From, "step 3 was sampled while step 2 was updated")
	require.Equal(t, 2, (*asked)[1].From)
	before, first, second := ref("config").Key, ref("amended", 0).Key, ref("amended", 1).Key
	require.NotEqual(t, first, second)
	require.Equal(t, map[int][]string{
		1: {"0 " + before}, 2: {"0 " + before, "1 " + second}, 3: {"0 " + before, "1 " + second},
		4: {"0 " + second}, 5: {"0 " + second},
	}, made)
}
