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
func Import(t testing.TB, objects store.Store, run string) { imported(t, objects, run, false) }

// Conversations commits an import of conversations: two tasks of two trials, of which the first
// fails; each trial calls the tool look once, which fails in the first.
func Conversations(t testing.TB, objects store.Store, run string) { imported(t, objects, run, true) }

func imported(t testing.TB, objects store.Store, run string, conversations bool) {
	t.Helper()
	r := &Run{Options: Options{Run: run, Created: "2026-01-02T03:04:05Z"}, Store: objects, t: t,
		writer: commit.New(objects), clock: Start}
	r.prepare()
	tokens, err := rollout.NewTokenizer()
	require.NoError(t, err)
	var prompts []schema.PromptRow
	var turns []schema.TurnRow
	var trajectories []schema.TrajectoryRow
	var rewards []schema.RewardRow
	var selection []schema.SelectionRow
	var calls []schema.ToolCallRow
	for g := range 2 {
		prompt := tokens.Encode("How many?")
		prompts = append(prompts, schema.PromptRow{GroupID: schema.GroupID(1, g), ProblemID: fmt.Sprintf("q%d", g),
			Problem: "How many?", Answer: "4", TokenIDs: prompt})
		for k := range 2 {
			group, id := schema.GroupID(1, g), schema.TrajectoryID(1, g, k)
			ids := append(append([]int32{}, prompt...), tokens.Encode("It is 4.")...)
			mask := make([]int32, len(ids))
			for i := len(prompt); i < len(ids); i++ {
				mask[i] = 1
			}
			turns = append(turns, schema.TurnRow{GroupID: group, TrajectoryID: id, ContextTokens: int32(len(prompt)),
				TokenIDs: ids, LossMask: mask, Response: "It is 4.", Finish: "stop"})
			trajectories = append(trajectories, schema.TrajectoryRow{GroupID: group, TrajectoryID: id,
				ProblemID: fmt.Sprintf("q%d", g), Source: "gsm8k/175b", Turns: 1, Tokens: int32(len(ids)),
				ResponseTokens: 8, Finish: "answered", FinalAnswer: "4", HasAnswer: true, Gold: "4", Text: "It is 4."})
			if conversations {
				last := &trajectories[len(trajectories)-1]
				last.Messages, last.ToolCalls, last.Source = new(`[{"role":"user","content":"How many?"}]`), 1, "openai"
				turns[len(turns)-1].ToolCalls = 1
				status := [2]string{"tool_error", "ok"}[k]
				calls = append(calls, schema.ToolCallRow{GroupID: group, TrajectoryID: id, Name: "look",
					Arguments: "{}", Status: status, Response: "4"})
			}
			rewards = append(rewards, schema.RewardRow{GroupID: group, TrajectoryID: id, Reward: float64(k),
				Outcome: float64(k), Success: k == 1, Turns: 1, Verdict: "exact"})
			selection = append(selection, schema.SelectionRow{GroupID: group, TrajectoryID: id, Kept: true, Count: 1,
				Weight: 1, GroupMean: 0.5, GroupVariance: 0.25})
		}
	}
	at := func(stage string) schema.Manifest { return r.manifest(schema.At(run, 1, stage)) }
	prompted := put(r, at(schema.StagePrompts), prompts)
	rolled := put(r, r.manifest(schema.At(run, 1, schema.StageRollout).WithTurn(0)), turns)
	stages := []schema.Ref{prompted, rolled}
	if conversations {
		stages = append(stages, put(r, r.manifest(schema.At(run, 1, schema.StageSandbox).WithTurn(0)), calls))
	}
	r.headOf(1, append(stages, put(r, at(schema.StageAssemble), trajectories), put(r, at(schema.StageReward), rewards),
		put(r, at(schema.StageResample), selection))...)
}
