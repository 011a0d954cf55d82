package activities

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/evaluate"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// An evaluation records its problems, turns and calls as a step's rollout does, each episode under the id in its row.
func TestAnEvaluationRecordsItsEpisodes(t *testing.T) {
	b := ledgerOf(t)
	out, err := do(b.stepBench, evaluate.Evaluate{Worker: b.deps}.Execute,
		api.EvaluateInput{Scope: b.scope, Tag: "step", Policy: b.policy})
	require.NoError(t, err)
	recipe := recipeOf(b.stepBench)
	m, err := b.deps.Record.Read(t.Context(), out.Manifest)
	require.NoError(t, err)
	prompts := rowsAt[schema.EvaluationPromptRow](b.stepBench, out.Manifest)
	require.Len(t, prompts, recipe.Evaluation.Problems)
	problems := map[string]schema.EvaluationPromptRow{}
	for _, p := range prompts {
		require.NotEmpty(t, p.Problem)
		require.NotEmpty(t, p.TokenIDs)
		problems[p.GroupID] = p
	}
	trajectories := map[string]schema.EvaluationTrajectoryRow{}
	for _, r := range rowsAt[schema.EvaluationTrajectoryRow](b.stepBench, out.Manifest) {
		trajectories[r.TrajectoryID] = r
		require.Equal(t, problems[r.GroupID].ProblemID, r.ProblemID)
	}
	turns, written := map[string]int32{}, map[string]int32{}
	for _, r := range rowsAt[schema.EvaluationTurnRow](b.stepBench, out.Manifest) {
		turns[r.TrajectoryID]++
		written[r.TrajectoryID] += int32(len(r.TokenIDs)) - r.ContextTokens
		require.NotEmpty(t, r.Response)
		require.Equal(t, b.policy.Digest, r.PolicyVersion)
		if r.Turn == 0 {
			require.Equal(t, problems[r.GroupID].TokenIDs, r.TokenIDs[:r.ContextTokens])
		}
	}
	calls := map[string]int32{}
	for _, r := range rowsAt[schema.EvaluationCallRow](b.stepBench, out.Manifest) {
		calls[r.TrajectoryID]++
	}
	rows := rowsAt[schema.EvaluationRow](b.stepBench, out.Manifest)
	require.Len(t, trajectories, len(rows), "sampled and greedy episodes have ids of their own")
	tokens, greedy := int64(0), 0
	for _, r := range rows {
		id := *r.TrajectoryID
		e := trajectories[id]
		require.Equal(t, []any{r.ProblemID, r.Tokens, *r.ResponseTokens, r.FinalAnswer},
			[]any{e.ProblemID, e.Tokens, e.ResponseTokens, e.FinalAnswer})
		require.Equal(t, []int32{r.Turns, r.ToolCalls, *r.ResponseTokens}, []int32{turns[id], calls[id], written[id]})
		tokens += int64(*r.ResponseTokens)
		if r.Greedy {
			greedy++
			_, _, sample, err := schema.ParseTrajectoryID(id)
			require.NoError(t, err)
			require.Equal(t, recipe.Evaluation.Samples, sample, "the greedy episode comes after the samples")
		}
	}
	require.Equal(t, recipe.Evaluation.Greedy, greedy > 0)
	require.Positive(t, tokens)
	require.Equal(t, tokens, out.Summary.Tokens)
	require.EqualValues(t, tokens, m.Stats[schema.StatTokens])
}

// The manifest of an evaluation has the mean score of the sampled episodes if the environment grades them.
func TestAnEvaluationGradesItsEpisodes(t *testing.T) {
	const search = "search[jeans socks boots]"
	resolved, err := recipes.Resolve("shop", "", nil, nil, nil)
	require.NoError(t, err)
	world, err := resolved.Recipe.Open()
	require.NoError(t, err)
	task, err := world.Task(t.Context(), env.Draw{Split: env.HeldOut})
	require.NoError(t, err)
	state, _, err := world.Reset(t.Context(), task)
	require.NoError(t, err)
	_, step, err := world.Step(t.Context(), state, search)
	require.NoError(t, err)
	actions := append(slices.Clone(step.Observation.Admissible[1:]), search, search, "click[buy now]")
	b := worldBench(t, "shop", actions)
	out, err := do(b, evaluate.Evaluate{Worker: b.deps}.Execute, api.EvaluateInput{Scope: b.scope, Tag: "step",
		Policy: b.policy})
	require.NoError(t, err)
	m, err := b.deps.Record.Read(t.Context(), out.Manifest)
	require.NoError(t, err)
	greedy := map[string]bool{}
	for _, r := range rowsAt[schema.EvaluationRow](b, out.Manifest) {
		greedy[*r.TrajectoryID] = r.Greedy
	}
	sum, bought := 0.0, 0
	for _, r := range rowsAt[schema.EvaluationTransitionRow](b, out.Manifest) {
		var last struct{ Score *float64 }
		require.NoError(t, json.Unmarshal([]byte(r.State), &last))
		if last.Score != nil && !greedy[r.TrajectoryID] {
			sum += *last.Score
			bought++
		}
	}
	require.Greater(t, bought, 5)
	require.Positive(t, sum)
	recipe := recipeOf(b)
	require.InDelta(t, sum/float64(recipe.Evaluation.Problems*recipe.Evaluation.Samples), m.Stats["score"], 1e-9)
}
