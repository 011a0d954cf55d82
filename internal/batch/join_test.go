package batch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

func TestJoinOutputsRefuses(t *testing.T) {
	recipe := func(set ...string) *recipes.Recipe {
		r, err := recipes.Resolve("quickstart", "", set, nil, nil)
		require.NoError(t, err)
		return &r.Recipe
	}
	batch := func() []Sequence {
		return []Sequence{{BatchRow: schema.BatchRow{TrajectoryID: "a", TokenIDs: []int32{1, 2},
			OldLogProbs: []float32{0, -1}}}}
	}
	rows := []schema.TokenOutputsRow{{TrajectoryID: "a"}}
	require.ErrorContains(t, JoinOutputs(batch(), nil, recipe("loss.old_log_probs=recompute")),
		"trajectory a is kept and has no token outputs")
	require.ErrorContains(t, JoinOutputs(batch(), rows, recipe("loss.old_log_probs=recompute")),
		"no log-probabilities of the policy")
	require.ErrorContains(t, JoinOutputs(batch(), rows, recipe("loss.kl={coefficient: 1}")),
		"no log-probabilities of the reference")

	rows[0].OldLogProbs, rows[0].ReferenceLogProbs = []float32{0, -2}, []float32{0, -3}
	got := batch()
	require.NoError(t, JoinOutputs(got, rows, recipe("token_outputs.reference=true")))
	require.Equal(t, batch(), got, "what is computed for the record alone stays out of the batch")
	require.NoError(t,
		JoinOutputs(got, rows, recipe("loss.old_log_probs=recompute", "loss.tis={cap: 2}", "loss.kl={coefficient: 1}")))
	require.Equal(t, schema.BatchRow{
		TrajectoryID: "a", TokenIDs: []int32{1, 2}, OldLogProbs: []float32{0, -2}, RolloutLogProbs: []float32{0, -1},
		ReferenceLogProbs: []float32{0, -3},
	}, got[0].BatchRow)

	penalised := batch()
	require.NoError(t,
		JoinOutputs(penalised, rows, recipe("advantage={name: reinforce_pp}", "loss.kl={coefficient: 1, in: reward}")))
	require.Nil(t, penalised[0].ReferenceLogProbs, "what the reward reads the update does not")
	require.Equal(t, []float32{0, -3}, penalised[0].reference)

	critic := []string{"advantage={name: gae}", "loss.value={}"}
	require.ErrorContains(t, JoinOutputs(batch(), rows, recipe(critic...)), "no values of the critic")
	rows[0].Values = []float32{1}
	require.ErrorContains(t, JoinOutputs(batch(), rows, recipe(critic...)),
		"values of the critic of 1 tokens, and it has 2")
}

func TestJoinTransitionsWantsOneForEachTurn(t *testing.T) {
	kept := func() []Sequence {
		return []Sequence{{BatchRow: schema.BatchRow{TrajectoryID: "a"}, turns: make([]schema.TurnRow, 2)}}
	}
	rows := []schema.TransitionRow{{TrajectoryID: "a"}, {TrajectoryID: "b"}, {TrajectoryID: "a", Turn: 1, Reward: 2}}
	require.ErrorContains(t, JoinTransitions(kept(), rows[:2]),
		"trajectory a is selected and has 2 turns and 1 transitions")
	got := kept()
	require.NoError(t, JoinTransitions(got, rows))
	require.Equal(t, map[int32]schema.TransitionRow{0: rows[0], 1: rows[2]}, got[0].steps)
}
