package activities_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/math"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/download"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// boxer answers in a box; a row's stream chooses what.
type boxer struct {
	policy.Engine
	tok     *tokenizer.Tokenizer
	answers []string
}

func (b boxer) Generate(_ context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	var g policy.Generated
	for _, stream := range req.Streams {
		text, _ := protocol.Boxed{}.Write(env.Move{Answer: b.answers[stream>>9%uint64(len(b.answers))]})
		ids := b.tok.Encode(text)
		g.Tokens, g.Finish = append(g.Tokens, ids), append(g.Finish, policy.FinishStop)
		g.LogProbs, g.Entropies = append(g.LogProbs, make([]float32, len(ids))),
			append(g.Entropies, make([]float32, len(ids)))
	}
	return g, nil
}

const questionRecipe = `version: 1
name: questions
steps: 1
environment: {name: math, settings: {train: 's3://data/f.jsonl', train_sha256: '%x', held_out_share: 0.3}}
engine: {kind: cpu}
policy: {layers: 1, hidden: 32, heads: 1, kv_heads: 1, head_dim: 32, ffn: 64, max_positions: 256}
warm_start: {steps: 1, batch: 2, optimizer: {lr: 0.001}}
rollout: {prompts: 2, samples_per_prompt: 12, max_turns: 1, max_turn_tokens: 64, max_tokens: 256, shard_groups: 1}
sandbox: {cpu_seconds: 1, wall_seconds: 20, memory_mb: 128, output_kb: 16, min_tier: landlock}
reward: {name: rstar2_outcome, symbolic: true}
advantage: {name: grpo, std: true}
loss: {name: ppo_clip, clip_low: 0.2, clip_high: 0.2, aggregation: token-mean}
optimizer: {lr: 0.0001, minibatches: 1}
evaluation: {problems: 2, samples: 6, greedy: false}
checkpoint: {every: 0, keep_last: 1}
`

// Questions of a file on the S3 server train: their golds are expressions, which sympy compares in rollouts and in
// evaluations. A file that has changed is refused for good.
func TestQuestionsOfAFileTrain(t *testing.T) {
	tok, err := rollout.TokenizerOf(protocol.Boxed{}, math.Plain)
	require.NoError(t, err)
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, `{"question": "What is the %dth sum of one and x?", "answer": "so\n#### 1+x"}`+"\n", i)
	}
	data := mem.New()
	require.NoError(t, data.Put(t.Context(), "f.jsonl", []byte(b.String())))
	a := &algebra{verdicts: map[string]symbolic.Verdict{"x+1": symbolic.Equal}, calls: map[string]int{}}
	objects := mem.New()
	deps := pipelinetest.Deps(t, objects, pipelinetest.Wrap{
		Rollout: func(e policy.Engine) policy.Engine { return boxer{e, tok, []string{"x+1", "x+2", "1+x"}} },
		Sandbox: func(e sandbox.Executor) sandbox.Executor { a.Executor = e; return a },
		Fetch:   download.Opener{Bucket: func(string) (store.Store, error) { return data, nil }}.Open,
	})
	w := &bench{store: objects, record: commit.New(objects), deps: deps}
	recipe := fmt.Sprintf(questionRecipe, sha256.Sum256([]byte(b.String())))
	out, err := w.train(t, workflows.TrainRunInput{Run: "r", RecipeYAML: recipe})
	require.NoError(t, err)
	found := map[string]bool{}
	for _, r := range stepRows[schema.RewardRow](t, objects, "r", 1, schema.StageReward) {
		found[r.Verdict] = true
		require.Equal(t, r.Verdict != "wrong", r.Success)
	}
	require.Equal(t, map[string]bool{"exact": true, "symbolic": true, "wrong": true}, found)
	exact := 0
	evaluated := evaluationRows(t, w)
	for _, r := range evaluated {
		require.Equal(t, r.FinalAnswer != "x+2", r.Success, "evaluations ask sympy too")
		if r.FinalAnswer == "1+x" {
			exact++
		}
	}
	require.Greater(t, out.Final.Success, float64(exact)/float64(len(evaluated)))
	noFaults(t, w)

	require.NoError(t, data.Delete(t.Context(), "f.jsonl"))
	require.NoError(t, data.Put(t.Context(), "f.jsonl", []byte(b.String()+"\n")))
	deps = pipelinetest.Deps(t, mem.New(), pipelinetest.Wrap{
		Fetch: download.Opener{Bucket: func(string) (store.Store, error) { return data, nil }}.Open})
	_, err = (&bench{deps: deps}).train(t, workflows.TrainRunInput{Run: "s", RecipeYAML: strings.Replace(recipe,
		", symbolic: true", "", 1)})
	require.ErrorContains(t, err, "train: s3://data/f.jsonl: has the digest ")
}

// evaluationRows reads the rows of all evaluations of the run.
func evaluationRows(t *testing.T, b *bench) []schema.EvaluationRow {
	t.Helper()
	var all []schema.EvaluationRow
	listed, err := b.store.List(t.Context(), schema.RunPrefix("r")+"table=evaluations/")
	require.NoError(t, err)
	require.NotEmpty(t, listed)
	for _, o := range listed {
		data, err := b.store.Get(t.Context(), o.Key)
		require.NoError(t, err)
		rows, err := schema.Decode[schema.EvaluationRow](data)
		require.NoError(t, err)
		all = append(all, rows...)
	}
	return all
}
