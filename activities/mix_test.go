package activities_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

const mixRecipe = `version: 1
name: mixed
steps: 2
environment: {name: mix, parts: [%s]}
engine: {kind: cpu}
policy: {layers: 1, hidden: 32, heads: 1, kv_heads: 1, head_dim: 32, ffn: 64, max_positions: 1024}
warm_start: {steps: 2, batch: 8, noise: 0.1, optimizer: {lr: 0.001}}
rollout: {mode: %s, prompts: 4, samples_per_prompt: 2, max_turns: %d, max_turn_tokens: 48, max_tokens: 1024,
  shard_groups: 2}
sandbox: {cpu_seconds: 1, wall_seconds: 20, memory_mb: 128, output_kb: 16, min_tier: landlock}
%s
loss: {name: ppo_clip, clip_low: 0.2, clip_high: 0.2, aggregation: token-mean}
optimizer: {lr: 0.0001, minibatches: 1}
evaluation: {problems: 4, samples: 1, greedy: false}
checkpoint: {every: 0, keep_last: 1}
`

const (
	worldParts = "{name: sokoban, settings: {size: 5, max_moves: 4}}, {name: alfworld, settings: {rooms: bathroom, " +
		"places: 3, essential: true, sparse: true}}"
	worldMethod = "layout: turns\nreward: {name: arlarena}\n" +
		"advantage: {name: gigpo, std: true, gamma: 0.95, omega: 1, anchors: exact, anchor: state}"
	questionMethod = "reward: {name: rstar2_outcome}\nadvantage: {name: grpo, std: true}"
)

// Two worlds, and two kinds of questions, train in one run. Prompts and evaluations say which part they are of, each
// part is drawn by its weight, and both modes give the same bytes.
func TestMixesTrain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "q.jsonl")
	var rows strings.Builder
	for i := range 20 {
		fmt.Fprintf(&rows, `{"question": "What is %d plus one?", "answer": "%d"}`+"\n", i, i+1)
	}
	require.NoError(t, os.WriteFile(file, []byte(rows.String()), 0o600))
	questions := "{name: calc, weight: 3, level_shares: {'2': 1}}, {name: rstar2_math, settings: {train: " + file +
		", held_out_share: 0.5}}"
	for name, c := range map[string]struct {
		parts, method string
		turns         int
		share         map[string]int // of the 8 prompts of a run
	}{
		"worlds":    {worldParts, worldMethod, 4, map[string]int{"sokoban": 4, "alfworld": 4}},
		"questions": {questions, questionMethod, 2, map[string]int{"calc": 6, "rstar2_math": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var weights []string
			for _, mode := range []string{"interleaved", "staged"} {
				b := newBench(t, mem.New())
				out, err := b.train(t, workflows.TrainRunInput{Run: "r",
					RecipeYAML: fmt.Sprintf(mixRecipe, c.parts, mode, c.turns, c.method)})
				require.NoError(t, err)
				weights = append(weights, out.Policy.Digest)
				require.Len(t, out.Final.ByPart, 2)
				drawn := map[string]int{}
				for step := 1; step <= 2; step++ {
					for _, p := range stepRows[schema.PromptRow](t, b.store, "r", step, schema.StagePrompts) {
						require.NotNil(t, p.Part)
						drawn[*p.Part]++
					}
				}
				require.Equal(t, c.share, drawn)
				evaluated := map[string]int{}
				for _, r := range evaluationRows(t, b) {
					evaluated[*r.Part]++
				}
				require.Len(t, evaluated, 2)
				shown(t, b, name)
				noFaults(t, b)
			}
			require.Equal(t, weights[0], weights[1])
		})
	}
}

// shown checks that episodes name their part and are laid out as those of its environment.
func shown(t *testing.T, b *bench, name string) {
	t.Helper()
	view, err := analysis.New(b.store).Evaluation(t.Context(), "r", analysis.LastEvaluation,
		analysis.Choice{Group: analysis.AnyGroup, N: 8})
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, view.Write(&text))
	if name == "worlds" {
		require.Contains(t, text.String(), "part       sokoban")
		require.Contains(t, text.String(), "part       alfworld")
		require.Contains(t, text.String(), "│ ██", "a board is laid out")
		require.Contains(t, text.String(), "Your task is to: ", "the goal of a house is shown")
		return
	}
	require.Contains(t, text.String(), "part       calc")
}
