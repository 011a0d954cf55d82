package activities

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/evaluate"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/rollout/debate"
	"github.com/ropewalk/ropewalk/schema"
)

// In an interactive environment the agents debate each action: the chosen response is the episode's turn, and the
// record holds every proposal of every round. The agents of the second round read the candidates of the first, and all
// of them read the constraints.
func TestAgentsDebateEachAction(t *testing.T) {
	actions := []string{"search[jeans]", "search[socks]", "search[boots]", "click[buy now]"}
	b := movedBench(t, "shop", mover{actions: actions}, "evaluation.problems=4", "evaluation.samples=2",
		"evaluation.greedy=false", "evaluation.debate={agents: 3, rounds: 2, aggressive: true}",
		"policy.max_positions=4096", "rollout.max_tokens=4096", "rollout.max_turns=4")
	out, err := do(b, evaluate.Evaluate{Worker: b.deps}.Execute, api.EvaluateInput{Scope: b.scope, Tag: "step",
		Policy: b.policy})
	require.NoError(t, err)
	require.Equal(t, 8, out.Summary.Trajectories)
	chosen := map[string]map[int32]string{} // by episode and turn
	rounds, drawn := map[int32]int{}, 0
	held := map[[3]any][][]debate.Proposal{}
	for _, r := range rowsAt[schema.EvaluationDebateRow](b, out.Manifest) {
		rounds[r.Round]++
		require.Len(t, r.LogProbs, len(r.TokenIDs)-int(*r.ContextTokens))
		at := [3]any{r.GroupID, r.Sample, r.Turn}
		if int(r.Round) == len(held[at]) {
			held[at] = append(held[at], nil)
		}
		held[at][r.Round] = append(held[at][r.Round], debate.Proposal{Candidate: r.Candidate, Abstained: r.Abstained})
		if r.Chosen {
			if chosen[r.TrajectoryID] == nil {
				chosen[r.TrajectoryID] = map[int32]string{}
			}
			require.Empty(t, chosen[r.TrajectoryID][r.Turn])
			chosen[r.TrajectoryID][r.Turn] = r.Candidate
		}
		if r.Drawn {
			drawn++
		}
	}
	require.Positive(t, rounds[1])
	require.Positive(t, rounds[2])
	require.Positive(t, drawn)
	for at, so := range held {
		for t0, round := range so[:len(so)-1] {
			_, majority := debate.Majority(round)
			require.False(t, majority, "%v went on after round %d", at, t0)
		}
	}
	acted := rowsAt[schema.EvaluationTransitionRow](b, out.Manifest)
	require.NotEmpty(t, acted)
	for _, a := range acted {
		require.Equal(t, chosen[a.TrajectoryID][a.Turn], a.Action)
	}
	turns := rowsAt[schema.EvaluationTurnRow](b, out.Manifest)
	require.True(t, slices.ContainsFunc(turns, func(r schema.EvaluationTurnRow) bool {
		return r.Turn > 0 && strings.Contains(r.Observation, "They propose:")
	}))
	for _, r := range rowsAt[schema.EvaluationRow](b, out.Manifest) {
		require.Greater(t, *r.ResponseTokens, int32(0))
		require.NotNil(t, r.Score)
		require.NotNil(t, r.TaskType)
	}
	require.NotEmpty(t, out.Summary.ByType)
}
