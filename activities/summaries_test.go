package activities_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/replay"
	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/planning"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// browser is an engine whose policy browses and answers by a script that follows from each row's stream. The reference
// is the real model.
type browser struct {
	policy.Engine
	tok       *tokenizer.Tokenizer
	summaries *atomic.Int64 // rows that the reference generated
}

func (b browser) Generate(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	if req.Role == policy.RoleReference {
		b.summaries.Add(int64(len(req.Prefixes)))
		return b.Engine.Generate(ctx, req)
	}
	call := func(title string) string {
		return "<think>\nx\n</think>\n\n<tool_call>\n" + `{"name": "browse", "arguments": {"document": "` + title +
			`"}}` + "\n</tool_call><|im_end|>"
	}
	moves := []string{call("Index of names: city"), call("Index of names: river"), call("no such page"),
		"<think>\nx\n</think>\n\nVelm \\boxed{Velm}<|im_end|>"}
	var g policy.Generated
	for _, stream := range req.Streams {
		ids := b.tok.Encode(moves[stream>>9%uint64(len(moves))])
		g.Tokens, g.Finish = append(g.Tokens, ids), append(g.Finish, policy.FinishStop)
		g.LogProbs, g.Entropies = append(g.LogProbs, make([]float32, len(ids))),
			append(g.Entropies, make([]float32, len(ids)))
	}
	return g, nil
}

// summarising overrides the recipe searchqa: summaries of at most 16 tokens, by a tiny model.
var summarising = []string{
	"environment.settings={documents: 200, brief: true, results: 2, summary_tokens: 16}",
	"rollout.protocol=hermes", "rollout.tools=[search, browse]",
	"policy={layers: 1, hidden: 32, heads: 1, kv_heads: 1, head_dim: 32, ffn: 64, max_positions: 4096}",
	"warm_start={steps: 1, batch: 1, optimizer: {lr: 0.001}}", "steps=2",
	"rollout.prompts=2", "rollout.samples_per_prompt=4", "rollout.shard_groups=1", "rollout.max_turns=3",
	"rollout.max_turn_tokens=256", "rollout.max_tokens=3072", "reward={name: f1}",
	"evaluation={problems: 2, samples: 2, greedy: false}",
}

// summaryBench is a worker with a browser. The returned counter counts the summaries that it generates.
func summaryBench(t *testing.T, objects store.Store) (*bench, *atomic.Int64) {
	t.Helper()
	resolved, err := recipes.Resolve("searchqa", "", summarising, nil, nil)
	require.NoError(t, err)
	tok, err := planning.TokenizerOf(&resolved.Recipe)
	require.NoError(t, err)
	n := &atomic.Int64{}
	deps := pipelinetest.Deps(t, objects, pipelinetest.Wrap{
		Rollout: func(e policy.Engine) policy.Engine { return browser{e, tok, n} }})
	return &bench{store: objects, record: commit.New(objects), deps: deps}, n
}

// A run with summaries has the same record in both modes, and after a lost commit. The first policy writes all
// summaries; they are in the record as results of calls, so that a check of the run needs no engine.
func TestSummariesOfPages(t *testing.T) {
	ctx := t.Context()
	train := func(b *bench, set ...string) {
		lendWarmStarts(t, b.store)
		_, err := b.train(t, workflows.TrainRunInput{Run: "r", Recipe: "searchqa",
			Set: slices.Concat(summarising, set)})
		require.NoError(t, err)
		keepWarmStarts(t, b.store)
	}
	digests := func(of store.Store) []string { // the recipes differ in their mode
		return slices.DeleteFunc(dataDigests(ctx, t, of, "r"),
			func(s string) bool { return strings.HasPrefix(s, "table=documents/") })
	}
	staged, n := summaryBench(t, mem.New())
	train(staged, "rollout.mode=staged")
	want := digests(staged.store)
	require.Positive(t, n.Load())

	interleaved, again := summaryBench(t, mem.New())
	train(interleaved)
	require.Equal(t, want, digests(interleaved.store))
	require.Equal(t, n.Load(), again.Load())

	place := schema.At("r", 2, schema.StageSandbox).WithTurn(0).WithShard(1).ManifestKey()
	objects := faults.New(mem.New(), faults.Rule{Op: faults.PutIfAbsent, Key: place, Nth: 1, Effect: faults.Fail})
	lost, more := summaryBench(t, objects)
	train(lost)
	require.Equal(t, 2, objects.Count(faults.PutIfAbsent, place), "the stage runs again")
	require.Greater(t, more.Load(), n.Load())
	require.Equal(t, want, digests(objects), "with the same bytes")

	warm, ref, found, err := staged.record.Lookup(ctx, schema.AtInit("r", schema.StageWarmStart))
	require.NoError(t, err)
	require.True(t, found)
	shown := map[string]bool{}
	for step := 1; step <= 2; step++ {
		for _, row := range stepRows[schema.ToolCallRow](t, staged.store, "r", step, schema.StageSandbox) {
			require.Nil(t, row.Excluded)
			if row.Status != "ok" {
				require.Contains(t, row.Stderr, "no document has the title")
				continue
			}
			title, summary, ok := strings.Cut(row.Stdout, "\n")
			require.True(t, ok)
			require.Contains(t, title, "Index of names: ")
			require.NotContains(t, summary, "A register.", "the page itself")
			shown[summary] = true
		}
		m, _, found, err := staged.record.Lookup(ctx,
			schema.At("r", step, schema.StageSandbox).WithTurn(0).WithShard(0))
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, warm.Checkpoint.Digest, m.Note["summary_model"])
		require.Contains(t, m.Inputs, ref)
	}
	require.NotEmpty(t, shown)
	of, recipe := staged.policyOf(t, "r", 2, "rollout.mode=interleaved")
	_, err = staged.evaluate(workflows.EvaluateInput{Run: "e", RecipeYAML: recipe, RecipeFile: "r", Policy: of})
	require.NoError(t, err)
	m, _, found, err := staged.record.Lookup(ctx, schema.At("e", 2, schema.StageEvaluate))
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, warm.Checkpoint.Digest, m.Note["summary_model"], "the first policy of the measured one's run")
	require.Contains(t, m.Inputs, ref)
	reader, err := replay.NewReader(staged.store, unknown)
	require.NoError(t, err)
	before := n.Load()
	_, checked, err := reader.CheckRun(ctx, "r", func(int, int) {})
	require.NoError(t, err)
	require.Len(t, checked, 2)
	require.Equal(t, before, n.Load(), "nothing is generated")
	verified, err := verify.Run(ctx, staged.store, "r")
	require.NoError(t, err)
	require.Empty(t, verified.Faults)
}

// unable is a sampler that holds the policy alone.
type unable struct{ policy.Engine }

func (u unable) Capabilities() policy.Capabilities {
	can := u.Engine.Capabilities()
	can.Reference = false
	return can
}

// Where summaries cannot be written, the run is refused by name.
func TestSummariesThatCannotBe(t *testing.T) {
	objects := mem.New()
	b := &bench{store: objects, record: commit.New(objects), deps: pipelinetest.Deps(t, objects, pipelinetest.Wrap{
		Rollout: func(e policy.Engine) policy.Engine { return unable{e} }})}
	_, err := b.train(t, workflows.TrainRunInput{Run: "r", Recipe: "searchqa", Set: summarising})
	require.ErrorContains(t, err, "environment.settings.summary_tokens")
	require.ErrorContains(t, err, "a second model next to the policy")
	for set, want := range map[string]string{
		"rollout.tools=[search]":                   "rollout.tools does not name browse",
		"policy.max_positions=31":                  "more than half of policy.max_positions 31",
		"environment.settings={summary_tokens: 7}": "summary_tokens must be 8 to 6000, got 7",
	} {
		_, err := recipes.Resolve("searchqa", "", append(slices.Clone(summarising), set), nil, nil)
		require.ErrorContains(t, err, want, set)
	}
}
