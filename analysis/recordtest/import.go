package recordtest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// Import commits a reprocessed import of one step: two groups of two trajectories without a policy,
// whose log-probabilities are null, with rewards and a selection, and neither update nor evaluation.
func Import(t testing.TB, objects store.Store, run string) {
	t.Helper()
	r := &Run{Options: Options{Run: run, Created: "2026-01-02T03:04:05Z"}, Store: objects, t: t, writer: commit.New(objects), clock: Start}
	r.prepare()
	tokens, err := rollout.NewTokenizer()
	require.NoError(t, err)
	var prompts []schema.PromptRow
	var turns []schema.TurnRow
	var trajectories []schema.TrajectoryRow
	var rewards []schema.RewardRow
	var selection []schema.SelectionRow
	for g := range 2 {
		prompt := tokens.Encode("How many?")
		prompts = append(prompts, schema.PromptRow{GroupID: schema.GroupID(1, g), ProblemID: fmt.Sprintf("q%d", g), Problem: "How many?", Answer: "4", TokenIDs: prompt})
		for k := range 2 {
			group, id := schema.GroupID(1, g), schema.TrajectoryID(1, g, k)
			ids := append(append([]int32{}, prompt...), tokens.Encode("It is 4.")...)
			mask := make([]int32, len(ids))
			for i := len(prompt); i < len(ids); i++ {
				mask[i] = 1
			}
			turns = append(turns, schema.TurnRow{GroupID: group, TrajectoryID: id, ContextTokens: int32(len(prompt)), TokenIDs: ids, LossMask: mask, Response: "It is 4.", Finish: "stop"})
			trajectories = append(trajectories, schema.TrajectoryRow{GroupID: group, TrajectoryID: id, ProblemID: fmt.Sprintf("q%d", g), Source: "gsm8k/175b", Turns: 1, Tokens: int32(len(ids)), ResponseTokens: 8, Finish: "answered", FinalAnswer: "4", HasAnswer: true, Gold: "4", Text: "It is 4."})
			rewards = append(rewards, schema.RewardRow{GroupID: group, TrajectoryID: id, Reward: float64(k), Outcome: float64(k), Success: k == 1, Turns: 1, Verdict: "exact"})
			selection = append(selection, schema.SelectionRow{GroupID: group, TrajectoryID: id, Kept: true, Count: 1, Weight: 1, GroupMean: 0.5, GroupVariance: 0.25})
		}
	}
	at := func(stage string) schema.Manifest { return r.manifest(schema.At(run, 1, stage)) }
	prompted := put(r, at(schema.StagePrompts), prompts)
	rolled := put(r, r.manifest(schema.At(run, 1, schema.StageRollout).WithTurn(0)), turns)
	r.headOf(1, prompted, rolled, put(r, at(schema.StageAssemble), trajectories), put(r, at(schema.StageReward), rewards), put(r, at(schema.StageResample), selection))
}
