package activities_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/code"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/internal/testing/zygotetest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// programs are what the engine of these tests writes, and how each is graded.
var programs = []struct{ text, verdict, grader string }{
	{"def f(x):\n    return 2 * x", schema.GradingEqual, "tests"},
	{"def f(x):\n    return x", schema.GradingDifferent, "tests"},
	{"import sys; sys.exit(0)", schema.GradingDifferent, "tests"},
	{"x = bytearray(1 << 30)", schema.GradingUnreadable, "limit out_of_memory"},
}

// programmer writes the programs; a row's stream chooses which.
type programmer struct {
	policy.Engine
	tok *tokenizer.Tokenizer
}

func (p programmer) Generate(_ context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	var g policy.Generated
	for _, stream := range req.Streams {
		text, ok := protocol.Program{}.Write(env.Move{Answer: programs[stream>>9%uint64(len(programs))].text})
		if !ok {
			return g, errors.New("the protocol cannot write the program")
		}
		ids := p.tok.Encode(text)
		g.Tokens, g.Finish = append(g.Tokens, ids), append(g.Finish, policy.FinishStop)
		g.LogProbs, g.Entropies = append(g.LogProbs, make([]float32, len(ids))),
			append(g.Entropies, make([]float32, len(ids)))
	}
	return g, nil
}

// flaky is a sandbox that breaks on programs that hold a word, except with tests that hold another.
type flaky struct {
	sandbox.Executor
	word, except string
}

func (f flaky) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	results, err := f.Executor.Run(ctx, calls)
	broken := make(sandbox.CallErrors, len(calls))
	for i, c := range calls {
		spared := f.except != "" && strings.Contains(c.Stdin, f.except)
		if f.word != "" && strings.Contains(c.Code, f.word) && !spared {
			broken[i] = errors.New("the interpreter is gone")
		}
	}
	if err == nil && len(broken.Unwrap()) > 0 {
		return results, broken
	}
	return results, err
}

// programBench is a worker whose engine is the programmer.
func programBench(t *testing.T, breaksOn flaky) *bench {
	t.Helper()
	tok, err := rollout.TokenizerOf(protocol.Program{}, code.Declaration)
	require.NoError(t, err)
	objects := mem.New()
	deps := pipelinetest.Deps(t, objects, pipelinetest.Wrap{
		Rollout: func(e policy.Engine) policy.Engine { return programmer{e, tok} },
		Sandbox: func(e sandbox.Executor) sandbox.Executor { breaksOn.Executor = e; return breaksOn },
	})
	return &bench{store: objects, record: commit.New(objects), deps: deps}
}

const programRecipe = `version: 1
name: programs
steps: 1
environment: {name: code, settings: {train: %q, held_out: %q}}
engine: {kind: cpu}
policy: {layers: 1, hidden: 32, heads: 1, kv_heads: 1, head_dim: 32, ffn: 64, max_positions: 256}
warm_start: {steps: 1, batch: 2, optimizer: {lr: 0.001}}
rollout: {prompts: 2, samples_per_prompt: 12, max_turns: 1, max_turn_tokens: 128, max_tokens: 256, shard_groups: 1}
sandbox: {cpu_seconds: 1, wall_seconds: 20, memory_mb: 128, output_kb: 16, min_tier: landlock}
reward: {name: unit_tests}
advantage: {name: grpo, std: true}
loss: {name: ppo_clip, clip_low: 0.2, clip_high: 0.2, aggregation: token-mean}
optimizer: {lr: 0.0001, minibatches: 1}
evaluation: {problems: 2, samples: 4, greedy: false}
checkpoint: {every: 0, keep_last: 1}
`

// doubles writes files of functions that double their argument, and returns the recipe.
func doubles(t *testing.T) string {
	t.Helper()
	write := func(name string) string {
		var b strings.Builder
		for i := range 16 {
			fmt.Fprintf(&b, `{"prompt": "def f(x):\n    \"\"\"Doubles (%s, %d).\"\"\"\n", "entry_point": "f", "test": `+
				`"def check(c):\n    assert c(3) == 6\n", "canonical_solution": "    return 2 * x\n"}`+"\n", name, i)
		}
		path := filepath.Join(t.TempDir(), name+".jsonl")
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
		return path
	}
	return fmt.Sprintf(programRecipe, write("train"), write("test"))
}

// Programs are graded by their tests in a stage of its own, from which rewards and evaluations follow. Verdicts are
// data, whatever a program does.
func TestProgramsAreTested(t *testing.T) {
	zygotetest.Need(t)
	b := programBench(t, flaky{})
	out, err := b.train(t, workflows.TrainRunInput{Run: "r", RecipeYAML: doubles(t)})
	require.NoError(t, err)
	want, seen := map[string][2]string{}, map[string]bool{}
	for _, p := range programs {
		want[p.text] = [2]string{p.verdict, p.grader}
	}
	right := 0
	for _, g := range stepRows[schema.GradingRow](t, b.store, "r", 1, schema.StageGrade) {
		require.Equal(t, want[g.Answer], [2]string{g.Verdict, g.Grader}, g.Answer)
		if seen[g.Answer] = true; g.Verdict == schema.GradingEqual {
			right++
		}
	}
	require.Len(t, seen, len(programs))
	passed := 0
	for _, r := range stepRows[schema.RewardRow](t, b.store, "r", 1, schema.StageReward) {
		require.Equal(t, []any{r.Success, r.Reward}, []any{r.Verdict == "passed", r.Outcome})
		if r.Success {
			passed++
		} else {
			require.Equal(t, "failed", r.Verdict)
		}
	}
	require.Equal(t, right, passed)
	require.Positive(t, passed)
	require.NotNil(t, out.Final)
	require.Positive(t, out.Final.Success, "evaluations run tests too")
	require.Less(t, out.Final.Success, 1.0)
	noFaults(t, b)
	checked(t, b.store, "r")
}

// A sandbox that breaks on a program excludes its trajectories: they have no score. An evaluation, which excludes
// nothing, fails.
func TestABrokenSandboxIsNoScore(t *testing.T) {
	zygotetest.Need(t)
	b := programBench(t, flaky{word: "sys.exit(0)", except: "Doubles (test"})
	_, err := b.train(t, workflows.TrainRunInput{Run: "r", RecipeYAML: doubles(t)})
	require.NoError(t, err)
	excluded := 0
	for _, g := range stepRows[schema.GradingRow](t, b.store, "r", 1, schema.StageGrade) {
		require.Equal(t, strings.Contains(g.Answer, "sys.exit(0)"), g.Excluded != nil)
		if g.Excluded != nil {
			require.Equal(t, "grading: the interpreter is gone", *g.Excluded)
			excluded++
		}
	}
	require.Positive(t, excluded)
	require.Len(t, stepRows[schema.RewardRow](t, b.store, "r", 1, schema.StageReward), 24-excluded)
	noFaults(t, b)

	b = programBench(t, flaky{word: "sys.exit(0)"})
	_, err = b.train(t, workflows.TrainRunInput{Run: "r", RecipeYAML: doubles(t)})
	require.ErrorContains(t, err, "grade an answer: the interpreter is gone")
}
