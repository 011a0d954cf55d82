package activities_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// publishedFolder makes a tiny Llama with a tokenizer and a chat template as others publish them.
func publishedFolder(t *testing.T) string {
	t.Helper()
	texts := []string{strings.Repeat("one and two ", 9)}
	own, err := tokenizer.Train([]string{"<|im_start|>", "<|im_end|>"}, texts, 300)
	require.NoError(t, err)
	symbols, plain := own.Symbols()
	v := tokenizer.Vocabulary{Tokens: symbols, Pattern: `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ` +
		`?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`}
	for id := plain; id < len(symbols); id++ {
		v.Added = append(v.Added, int32(id))
	}
	for _, m := range own.Merges() {
		a, b, _ := strings.Cut(m, " ")
		v.Merges = append(v.Merges, [2]string{a, b})
	}
	config, err := json.Marshal(map[string]any{"eos_token": "<|im_end|>", "tokenizer_class": "PreTrainedTokenizerFast",
		"chat_template": `{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}` +
			`{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`})
	require.NoError(t, err)
	shape := tiny
	shape.Vocab, shape.EOS = len(symbols), []int32{int32(len(symbols) - 1)}
	folder := filepath.Join(t.TempDir(), "published")
	require.NoError(t, checkpoint.Init(folder, shape, 5, map[string][]byte{"tokenizer.json": v.JSON(),
		"tokenizer_config.json": config}))
	return folder
}

// A policy that started from a published model is evaluated with that model's tokenizer and template, which the store
// has: the folder may be gone. So is the published model itself.
func TestPoliciesOfPublishedModelsAreEvaluated(t *testing.T) {
	folder, objects := publishedFolder(t), mem.New()
	deps := pipelinetest.Deps(t, objects, pipelinetest.Wrap{})
	b := &bench{store: objects, record: commit.New(objects), deps: deps}
	set := []string{"policy={checkpoint: '" + folder + "'}", "steps=1", "rollout.prompts=2",
		"rollout.samples_per_prompt=2", "rollout.max_turn_tokens=16",
		"evaluation={problems: 4, samples: 1, greedy: false}"}
	trained, err := b.train(t, workflows.TrainRunInput{Run: "a", Recipe: "smollm2", Set: set})
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(folder))
	policy, recipe := b.policyOf(t, "a", 1)
	out, err := b.evaluate(workflows.EvaluateInput{Run: "e", RecipeYAML: recipe, RecipeFile: "r", Policy: policy})
	require.NoError(t, err)
	require.Equal(t, trained.Final, out.Summary)

	out, err = b.evaluate(workflows.EvaluateInput{Run: "f", RecipeYAML: recipe, RecipeFile: "r", Checkpoint: true})
	require.NoError(t, err)
	given, _ := b.policyOf(t, "a", 0)
	require.Equal(t, given.Digest, out.Policy.Digest)
	_, err = b.evaluate(workflows.EvaluateInput{Run: "g", RecipeYAML: recipe, RecipeFile: "r", Checkpoint: true,
		Policy: api.PolicyRef{Digest: strings.Repeat("0", 64)}})
	require.ErrorContains(t, err, "policy.checkpoint: the model at "+folder+" has the digest "+given.Digest[:16])
}

// An evaluation that asks for more problems than there are takes all of them, in one piece and in shards.
func TestAnEvaluationTakesAllThereAre(t *testing.T) {
	b, _ := trainedSmall(t)
	var rows strings.Builder
	for i := range 60 {
		rows.WriteString(`{"question": "What is ` + strings.Repeat("1 + ", i) + `1?", "answer": "1"}` + "\n")
	}
	file := filepath.Join(t.TempDir(), "own.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(rows.String()), 0o600))
	set := []string{"environment={name: math, settings: {train: " + file + ", held_out_share: 0.2}}",
		"rollout.protocol=rstar2", "warm_start={steps: 0, optimizer: {lr: 0.001, warmup_steps: 0}}",
		"evaluation.greedy=false", "evaluation.problems=100"}
	policy, recipe := b.policyOf(t, "a", 2, set...)
	_, parts := b.policyOf(t, "a", 2, append(set, "evaluation.shard_problems=2")...)
	whole, err := b.evaluate(workflows.EvaluateInput{Run: "e", RecipeYAML: recipe, RecipeFile: "r", Policy: policy})
	require.NoError(t, err)
	require.Greater(t, whole.Summary.N, 4)
	require.Less(t, whole.Summary.N, 60, "a fifth of the questions is held out")
	shards, err := b.evaluate(workflows.EvaluateInput{Run: "f", RecipeYAML: parts, RecipeFile: "r", Policy: policy})
	require.NoError(t, err)
	require.Equal(t, whole.Summary, shards.Summary)
}
