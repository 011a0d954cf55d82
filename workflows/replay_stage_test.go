package workflows

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// replayFakes fakes the activities of a replay of a step with 20 shards and keeps their inputs.
type replayFakes struct {
	*fakes
	claimed   api.ReplayInput
	scored    []api.ScoreInput
	resample  api.StageInput
	advantage api.StageInput
	compared  api.CompareInput
}

const replayShards = 20

func newReplayFakes(t *testing.T, steps int) *replayFakes {
	t.Helper()
	f := &replayFakes{fakes: &fakes{env: newEnvironment(), calls: map[string]int{}}}
	f.env.RegisterWorkflowWithOptions(ReplayStage, workflow.RegisterOptions{Name: ReplayStageName})
	handle(f.fakes, api.PrepareReplay, func(in api.ReplayInput) (api.ReplayPrepared, error) {
		f.claimed = in
		out := api.ReplayPrepared{Done: api.Done{Manifest: ref("claim")}, Gen: 3,
			Made: api.Made{{Stage: schema.StageRollout, Ref: ref("turn", 0)},
				{Stage: schema.StageRollout, Ref: ref("turn", 1)},
				{Stage: schema.StageReward, Ref: ref("rewards of the step")},
				{Stage: schema.StageResample, Ref: ref("selection of the step")}},
			Before: []api.StageRef{{Stage: "reward", Ref: ref("rewards of the step")},
				{Stage: "resample", Ref: ref("selection of the step")}}}
		for shard := range replayShards {
			out.Trajectories = append(out.Trajectories, api.ShardRef{Shard: shard, Ref: ref("assembled", shard)})
		}
		return out, nil
	})
	handle(f.fakes, api.ScoreRewards, func(in api.ScoreInput) (api.Scored, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.scored = append(f.scored, in)
		return api.Scored{Done: api.Done{Manifest: ref("scored", in.Shard)}}, nil
	})
	handle(f.fakes, api.CommitStages, func(in api.CommitInput) (api.Committed, error) {
		for i, p := range in.Stages[0].Parts {
			if p != ref("scored", i) {
				return api.Committed{}, fmt.Errorf("part %d is %s", i, p.Key)
			}
		}
		return api.Committed{Stages: []api.StageRef{{Stage: schema.StageReward, Ref: ref("rewards again")}}}, nil
	})
	handle(f.fakes, api.Resample, func(in api.StageInput) (api.Resampled, error) {
		f.resample = in
		return api.Resampled{Done: api.Done{Manifest: ref("selection again")}}, nil
	})
	handle(f.fakes, api.ComputeAdvantages, func(in api.StageInput) (api.Advantages, error) {
		f.advantage = in
		return api.Advantages{Done: api.Done{Manifest: ref("batch again")}}, nil
	})
	handle(f.fakes, api.CompareReplay, func(in api.CompareInput) (api.Compared, error) {
		f.compared = in
		out := api.Compared{}
		for _, p := range in.Stages {
			out.Stages = append(out.Stages, api.StageComparison{Stage: p.Stage, Old: p.Old.Digest, New: p.New.Digest,
				Same: p.Stage == "reward", Shards: 1, Differs: 1})
		}
		return out, nil
	})
	handle(f.fakes, api.PrepareCheck, func(string) (api.CheckPlan, error) {
		out := api.CheckPlan{Code: "code"}
		for step := 1; step <= steps; step++ {
			out.Steps = append(out.Steps, step)
		}
		return out, nil
	})
	handle(f.fakes, api.CheckReplay, func(in api.CheckInput) (api.Checked, error) {
		out := api.Checked{Step: in.Step, Shards: 4}
		if in.Step%2 == 0 {
			out.Code, out.Differs = "old code", []api.Different{{Step: in.Step, Stage: "reward", Digest: "d"}}
		}
		return out, nil
	})
	return f
}

func (f *replayFakes) run(t *testing.T, in ReplayStageInput) ReplayStageResult {
	t.Helper()
	f.env.ExecuteWorkflow(ReplayStage, in)
	require.NoError(t, f.env.GetWorkflowError())
	var out ReplayStageResult
	require.NoError(t, f.env.GetWorkflowResult(&out))
	return out
}

func TestReplayStageMakesEveryStageInTheClaimedGeneration(t *testing.T) {
	f := newReplayFakes(t, 0)
	out := f.run(t, ReplayStageInput{Run: "r", Step: 7, From: "reward", Set: []string{"reward.fallback=true"}})
	require.Equal(t, 3, out.Gen)
	require.Len(t, out.Stages, 3)
	scope := api.Scope{Run: "r", Step: 7, Gen: 3, Config: ref("claim")}
	require.Equal(t, []string{"reward", "resample", "advantage"}, f.claimed.Stages)
	require.True(t, f.claimed.Follow, "no one said where to end")
	require.Equal(t, []string{"reward.fallback=true"}, f.claimed.Set)
	require.True(t, strings.HasPrefix(f.claimed.Claim, "default-test-workflow-id "), f.claimed.Claim)
	require.Len(t, f.scored, replayShards)
	for _, in := range f.scored {
		require.Equal(t, api.ScoreInput{Scope: scope, Shard: in.Shard, Trajectories: ref("assembled", in.Shard)}, in)
	}
	require.Equal(t, scope, f.resample.Scope)
	require.Equal(t, ref("rewards again"), f.resample.Made.One(schema.StageReward))
	require.Equal(t, scope, f.advantage.Scope)
	require.Equal(t, []schema.Ref{ref("turn", 0), ref("turn", 1)}, f.advantage.Made.All(schema.StageRollout))
	require.Equal(t, ref("rewards again"), f.advantage.Made.One(schema.StageReward))
	require.Equal(t, ref("selection again"), f.advantage.Made.One(schema.StageResample))
	require.Equal(t, []api.StagePair{
		{Stage: "reward", Old: ref("rewards of the step"), New: ref("rewards again")},
		{Stage: "resample", Old: ref("selection of the step"), New: ref("selection again")},
		{Stage: "advantage", New: ref("batch again")},
	}, f.compared.Stages)
}

func TestReplayStageReadsOfTheStepWhatIsNotReplayed(t *testing.T) {
	f := newReplayFakes(t, 0)
	f.run(t, ReplayStageInput{Run: "r", Step: 7, From: "advantage"})
	require.Zero(t, f.calls[api.ScoreRewards]+f.calls[api.Resample])
	require.Equal(t, ref("rewards of the step"), f.advantage.Made.One(schema.StageReward))
	require.Equal(t, ref("selection of the step"), f.advantage.Made.One(schema.StageResample))

	f = newReplayFakes(t, 0)
	f.run(t, ReplayStageInput{Run: "r", Step: 7, From: "resample", Through: "resample"})
	require.Zero(t, f.calls[api.ScoreRewards]+f.calls[api.ComputeAdvantages])
	require.Equal(t, ref("rewards of the step"), f.resample.Made.One(schema.StageReward))
}

// A replay through the update trains from the policy that the step began with, and compares what it has trained.
func TestReplayStageTrainsACounterfactualPolicy(t *testing.T) {
	policy := func(name string) api.PolicyRef { return api.PolicyRef{Manifest: ref(name), Digest: name, Step: 7} }
	for name, c := range map[string]struct {
		change           func(in *ReplayStageInput, prepared *api.CounterfactualUpdate)
		contrasted       bool
		factual, counter int // evaluations
	}{
		"compared": {func(*ReplayStageInput, *api.CounterfactualUpdate) {}, true, 1, 1},
		"measured by the run": {func(_ *ReplayStageInput, u *api.CounterfactualUpdate) {
			u.Measured = &api.EvaluationSummary{Rate: api.Rate{Success: 0.5}}
		}, true, 0, 1},
		"not measured": {func(in *ReplayStageInput, _ *api.CounterfactualUpdate) { in.NoEvaluation = true }, true, 0,
			0},
		"pruned": {func(_ *ReplayStageInput, u *api.CounterfactualUpdate) { u.Own = nil }, false, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newReplayFakes(t, 0)
			in := ReplayStageInput{Run: "r", Step: 7, From: "advantage", Through: "update"}
			prepared := api.ReplayPrepared{Done: api.Done{Manifest: ref("claim")}, Gen: 3,
				Stages: []string{"logprobs", "advantage", "update"},
				Made:   api.Made{{Stage: schema.StageResample, Ref: ref("selection")}},
				Update: &api.CounterfactualUpdate{Policy: policy("before"), Own: new(policy("own")),
					Config: ref("recipe")},
				Trajectories: []api.ShardRef{{Ref: ref("assembled")}}}
			c.change(&in, prepared.Update)
			f.counterfactual(t, prepared)
			out := f.run(t, in)
			require.Equal(t, policy("after").Digest, out.Update.Policy.Digest)
			require.Equal(t, prepared.Update.Own, out.Update.Own)
			require.Equal(t, c.contrasted, out.Update.KL != nil)
			require.Equal(t, c.factual, f.calls[api.EvaluateFactual])
			require.Equal(t, c.counter, f.calls[api.Evaluate])
			require.Equal(t, c.counter > 0, out.Update.Success != nil)
			require.Equal(t, "update", f.compared.Stages[2].Stage)
			require.NotEmpty(t, out.Update.Lines())
		})
	}
}

// counterfactual fakes a replay that trains.
func (f *replayFakes) counterfactual(t *testing.T, prepared api.ReplayPrepared) {
	scope := api.Scope{Run: "r", Step: 7, Gen: 3, Config: prepared.Manifest}
	handle(f.fakes, api.PrepareReplay, func(api.ReplayInput) (api.ReplayPrepared, error) { return prepared, nil })
	handle(f.fakes, api.ComputeTokenOutputs, func(in api.TokenOutputsInput) (api.TokenOutputs, error) {
		require.Equal(t, api.TokenOutputsInput{Scope: scope, Assembled: ref("assembled"), Selection: ref("selection"),
			Policy: prepared.Update.Policy}, in)
		return api.TokenOutputs{Done: api.Done{Manifest: ref("outputs")}}, nil
	})
	handle(f.fakes, api.CommitStages, func(api.CommitInput) (api.Committed, error) {
		return api.Committed{Stages: []api.StageRef{{Stage: schema.StageLogprobs, Ref: ref("outputs again")}}}, nil
	})
	handle(f.fakes, api.UpdatePolicy, func(in api.UpdateInput) (api.Updated, error) {
		require.Equal(t, api.UpdateInput{Scope: scope, Batch: ref("batch again"), Policy: prepared.Update.Policy}, in)
		return api.Updated{Done: api.Done{Manifest: ref("update")}, Policy: api.PolicyRef{Digest: "after"}}, nil
	})
	handle(f.fakes, api.ContrastPolicies, func(in api.ContrastInput) (api.Contrasted, error) {
		require.Equal(t, *prepared.Update.Own, in.Own)
		require.Equal(t, prepared.Trajectories, in.Trajectories)
		return api.Contrasted{KL: new(0.25), Tokens: 8}, nil
	})
	for _, name := range []string{api.Evaluate, api.EvaluateFactual} {
		handle(f.fakes, name, func(in api.EvaluateInput) (api.Evaluated, error) {
			require.Equal(t, ref("recipe"), in.Config, "policies are measured as the run measures them")
			return api.Evaluated{}, nil
		})
	}
}

func TestReplayStageRefusesBadInputAtOnce(t *testing.T) {
	for name, c := range map[string]struct{ json, want string }{
		"unknown field": {`{"run_id":"r","stage":"reward"}`, `unknown field "stage"`},
		"wrong type":    {`{"run_id":"r","step":"one"}`, "step: must be a whole number, got a text"},
		"no run":        {`{"step":1,"from":"reward"}`, "run_id: name the run"},
		"bad run":       {`{"run_id":"../x","step":1,"from":"reward"}`, "run_id: must match"},
		"no step":       {`{"run_id":"r","from":"reward"}`, "step: must be ≥ 1, got 0"},
		"no stage":      {`{"run_id":"r","step":1}`, "from: name a stage: reward, resample, advantage"},
		"unknown stage": {`{"run_id":"r","step":1,"from":"rewards"}`,
			`from: no stage "rewards"; those that can be replayed are reward, resample, advantage`},
		"the engine": {`{"run_id":"r","step":1,"from":"rollout"}`,
			"from: rollout cannot be replayed: it needs the engine and the environment; run the recipe again with " +
				"the same seed: ropewalk run"},
		"through a publication": {`{"run_id":"r","step":1,"from":"reward","through":"publish"}`,
			"through: publish cannot be replayed"},
		"no update": {`{"run_id":"r","step":1,"from":"reward","no_evaluation":true}`,
			"no_evaluation: only a replay through update evaluates"},
		"backwards": {`{"run_id":"r","step":1,"from":"advantage","through":"reward"}`,
			"through: reward comes before advantage"},
		"check and more": {`{"run_id":"r","check":true,"step":1}`, "must be left out"},
	} {
		t.Run(name, func(t *testing.T) {
			newReplayFakes(t, 0).refuses(t, ReplayStageName, c.json, c.want)
		})
	}
}

func TestReplayStageSaysWhatFailed(t *testing.T) {
	f := newReplayFakes(t, 0)
	tries := 0
	f.env.OnActivity(api.ScoreRewards, mock.Anything, mock.Anything).Return(func(api.ScoreInput) (api.Scored,
		error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		tries++
		return api.Scored{}, temporal.NewNonRetryableApplicationError("shard k is missing", api.FailCorrupt, nil)
	})
	f.env.ExecuteWorkflow(ReplayStage, ReplayStageInput{Run: "r", Step: 1, From: "reward"})
	var failure *temporal.ApplicationError
	require.ErrorAs(t, f.env.GetWorkflowError(), &failure)
	require.Equal(t, api.FailCorrupt, failure.Type())
	require.Equal(t, "reward: ScoreRewards: shard k is missing", failure.Message())
	require.Equal(t, replayShards, tries, "a failure stops no other shard")
	require.Zero(t, f.calls[api.CommitStages])
}

func TestReplayStageChecksEveryStep(t *testing.T) {
	f := newReplayFakes(t, 21)
	out := f.run(t, ReplayStageInput{Run: "r", Check: true})
	require.Equal(t, 21, f.calls[api.CheckReplay])
	require.Equal(t, 84, out.Check.Shards)
	require.Len(t, out.Check.Differs, 10)
	require.Equal(t, []string{"old code"}, out.Check.Codes)
	require.Equal(t, "code", out.Check.Code)
	var b strings.Builder
	out.Check.write(&b)
	require.Contains(t, b.String(), "21 of 21 steps, 84 shards made again, 10 differ")
	require.Contains(t, b.String(), "| 2 | reward | 0 | `d` |")
}

func TestReplayCheckContinuesAsNewWithItsState(t *testing.T) {
	f := newReplayFakes(t, checksPerHistory+1)
	f.env.ExecuteWorkflow(ReplayStage, ReplayStageInput{Run: "r", Check: true})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, f.env.GetWorkflowError(), &again)
	var in ReplayStageInput
	require.NoError(t, json.Unmarshal(again.Input.Payloads[0].Data, &in))
	require.Equal(t, checksPerHistory, in.Continued.Next)

	second := newReplayFakes(t, 0)
	out := second.run(t, in)
	require.Zero(t, second.calls[api.PrepareCheck])
	require.Equal(t, 1, second.calls[api.CheckReplay])
	require.Equal(t, 4*(checksPerHistory+1), out.Check.Shards)
}

func TestReplayDetailsAreReadable(t *testing.T) {
	r := &replayStage{in: ReplayStageInput{Run: "r", Step: 7, Set: []string{"advantage.std=false"}},
		stages: []string{"advantage"}, at: position{stage: "done"}}
	r.result = ReplayStageResult{Gen: 2, Stages: []api.StageComparison{
		{Stage: "reward", Old: strings.Repeat("a", 64), New: strings.Repeat("a", 64), Same: true, Shards: 2},
		{Stage: "advantage", Old: strings.Repeat("a", 64), New: strings.Repeat("b", 64), Shards: 1, Differs: 1},
		{Stage: "resample", New: strings.Repeat("b", 64), Shards: 1, Differs: 1},
	}}
	text := r.markdown()
	for _, want := range []string{
		"**r** · step 7 · replay of advantage · done", "Changed: `advantage.std=false`",
		"Generation 2; the step's head stays where it is",
		"| reward | 2 | `aaaaaaaaaaaa` | `aaaaaaaaaaaa` | same |", "1 of 1 shards changed", "made for the first time",
		"`ropewalk diff r --step 7 --gen 0,2`",
	} {
		require.Contains(t, text, want)
	}
}
