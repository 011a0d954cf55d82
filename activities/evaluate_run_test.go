package activities_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// evaluate runs EvaluateRun with the real activities.
func (b *bench) evaluate(in workflows.EvaluateInput) (workflows.EvaluateRunResult, error) {
	env := pipelinetest.Environment(b.deps)
	return pipelinetest.Run[workflows.EvaluateRunResult](env, workflows.EvaluateRunName, in)
}

// policyOf returns the policy of a finished run after a step, and the run's recipe with changes.
func (b *bench) policyOf(t *testing.T, run string, step int, set ...string) (api.PolicyRef, string) {
	t.Helper()
	view, err := analysis.New(b.store).Visible(t.Context(), run)
	require.NoError(t, err)
	all, err := view.Checkpoints(t.Context())
	require.NoError(t, err)
	var recipe json.RawMessage
	require.NoError(t, view.Recipe(t.Context(), &recipe))
	parsed, err := recipes.ParseCommitted("r", recipe, set)
	require.NoError(t, err)
	resolved, err := recipes.ResolveCommitted(parsed, nil)
	require.NoError(t, err)
	for _, c := range all {
		if c.Step == step {
			return api.PolicyRef{Manifest: c.Manifest, Digest: c.Digest, Step: step}, string(resolved.JSON)
		}
	}
	require.Failf(t, "no checkpoint", "of step %d", step)
	return api.PolicyRef{}, ""
}

// smallRun is the record of the run "a" of the small quickstart.
var smallRun struct {
	sync.Mutex
	store  *mem.Store
	result workflows.TrainRunResult
}

// trainedSmall returns a bench over a copy of smallRun, which the first test that asks for it trains.
func trainedSmall(t *testing.T) (*bench, workflows.TrainRunResult) {
	t.Helper()
	smallRun.Lock()
	defer smallRun.Unlock()
	if smallRun.store == nil {
		objects := mem.New()
		out, err := newBench(t, objects).train(t, workflows.TrainRunInput{Run: "a", Recipe: "quickstart", Set: small})
		require.NoError(t, err)
		smallRun.store, smallRun.result = objects, out
	}
	return newBench(t, copied(t, smallRun.store)), smallRun.result
}

// An evaluation of its own under an unchanged recipe samples what the training's last evaluation has sampled. Its
// record is whole, it is adopted when it is started again, and it refuses another policy and another workflow.
func TestAnEvaluationOfItsOwnHasARecordOfItsOwn(t *testing.T) {
	ctx := t.Context()
	b, trained := trainedSmall(t)
	policy, recipe := b.policyOf(t, "a", 2)
	require.Equal(t, trained.Policy.Digest, policy.Digest)
	in := workflows.EvaluateInput{Run: "e", RecipeYAML: recipe, RecipeFile: "r", Policy: policy}
	out, err := b.evaluate(in)
	require.NoError(t, err)
	require.Equal(t, trained.Final, out.Summary)

	record := analysis.New(b.store)
	overview, err := record.Overview(ctx, "e")
	require.NoError(t, err)
	require.Len(t, overview.Evaluations, 1)
	require.Equal(t, "evaluate", overview.Evaluations[0].Tag)
	require.Equal(t, out.Summary.Rate, overview.Evaluations[0].Summary.Rate)
	require.Equal(t, "done", overview.Run.Status)
	report, err := verify.Run(ctx, record.Store(), "e")
	require.NoError(t, err)
	require.Empty(t, report.Faults)

	again, err := b.evaluate(workflows.EvaluateInput{Run: "e", Resume: true})
	require.NoError(t, err)
	require.Equal(t, out, again)
	seed := uint64(2)
	_, err = b.train(t, workflows.TrainRunInput{Run: "b", Recipe: "quickstart", Set: small, Seed: &seed})
	require.NoError(t, err)
	other := in
	other.Policy, _ = b.policyOf(t, "b", 2)
	_, err = b.evaluate(other)
	require.ErrorContains(t, err, "run e evaluates another policy")
	_, err = b.train(t, workflows.TrainRunInput{Run: "e", Resume: true})
	require.ErrorContains(t, err, "run e is an evaluation of its own")
	_, err = b.evaluate(workflows.EvaluateInput{Run: "a", Resume: true})
	require.ErrorContains(t, err, "run a is not an evaluation of its own")
}

// More samples are a change of the recipe alone. A format with other fixed strings is refused.
func TestAnEvaluationInAnotherShape(t *testing.T) {
	b, _ := trainedSmall(t)
	policy, recipe := b.policyOf(t, "a", 2, "evaluation.samples=4", "evaluation.problems=3", "evaluation.greedy=false")
	_, err := b.evaluate(workflows.EvaluateInput{Run: "e", RecipeYAML: recipe, RecipeFile: "r", Policy: policy})
	require.NoError(t, err)
	overview, err := analysis.New(b.store).Overview(t.Context(), "e")
	require.NoError(t, err)
	e := overview.Evaluations[0]
	require.Equal(t, []int{1, 2, 4}, e.Passes.K)
	require.Equal(t, e.Summary.Success, e.Passes.PassAt[0].Success)
	require.Equal(t, e.Summary.Success, e.Passes.PassOf[0].Success)
	unknown := policy
	unknown.Digest = strings.Repeat("0", 64)
	_, err = b.evaluate(workflows.EvaluateInput{Run: "f", RecipeYAML: recipe, RecipeFile: "r", Policy: unknown})
	require.ErrorContains(t, err, "commits no checkpoint 0000000000000000")
	text, ok := recipes.Source("sokoban")
	require.True(t, ok)
	_, err = b.evaluate(workflows.EvaluateInput{Run: "f", RecipeYAML: string(text), RecipeFile: "r", Policy: policy})
	require.ErrorContains(t, err, "rollout.protocol: the policy was trained with another tokenizer than the prompt "+
		"format think_action of sokoban needs")
	require.ErrorContains(t, err, "evaluate a policy that was trained with it")
}

// An evaluation with shards has the rows of one without: a shard that a killed worker has lost is all that is run
// again.
func TestAnEvaluationInShards(t *testing.T) {
	ctx := t.Context()
	b, _ := trainedSmall(t)
	policy, whole := b.policyOf(t, "a", 2)
	_, parts := b.policyOf(t, "a", 2, "evaluation.shard_problems=2")
	one, err := b.evaluate(workflows.EvaluateInput{Run: "e", RecipeYAML: whole, RecipeFile: "r", Policy: policy})
	require.NoError(t, err)
	in := workflows.EvaluateInput{Run: "f", RecipeYAML: parts, RecipeFile: "r", Policy: policy}
	many, err := b.evaluate(in)
	require.NoError(t, err)
	require.Equal(t, one.Summary, many.Summary)

	record := analysis.New(b.store)
	rows := func(run string, table schema.Table) (n int) {
		view, err := record.Visible(ctx, run)
		require.NoError(t, err)
		shards, err := view.Shards(ctx, table)
		require.NoError(t, err)
		for _, s := range shards {
			n += s.Rows
		}
		return n
	}
	for _, table := range []schema.Table{schema.Evaluations, schema.EvaluationPrompts, schema.EvaluationTurns,
		schema.EvaluationTrajectories} {
		require.Positive(t, rows("e", table), table)
		require.Equal(t, rows("e", table), rows("f", table), table)
	}
	overview, err := record.Overview(ctx, "f")
	require.NoError(t, err)
	require.Len(t, overview.Evaluations, 1)
	report, err := verify.Run(ctx, record.Store(), "f")
	require.NoError(t, err)
	require.Empty(t, report.Faults)

	// What a killed run leaves: its recipe and some shards. They are adopted.
	at := schema.At("f", policy.Step, schema.StageEvaluate)
	require.NoError(t, b.store.Delete(ctx, at.ManifestKey()))
	require.NoError(t, b.store.Delete(ctx, at.WithShard(1).ManifestKey()))
	first, err := b.store.Get(ctx, at.WithShard(0).ManifestKey())
	require.NoError(t, err)
	again, err := b.evaluate(in)
	require.NoError(t, err)
	require.Equal(t, many.Summary, again.Summary)
	same, err := b.store.Get(ctx, at.WithShard(0).ManifestKey())
	require.NoError(t, err)
	require.Equal(t, first, same)

	// A figure that its rows do not give is a fault, and so is a lost shard.
	require.NoError(t, b.store.Delete(ctx, at.WithShard(0).ManifestKey()))
	report, err = verify.Run(ctx, record.Store(), "f")
	require.NoError(t, err)
	require.NotEmpty(t, report.Faults)
}

// A policy can be asked to read longer sequences than it was trained with.
func TestAnEvaluationWithLongerContexts(t *testing.T) {
	b, _ := trainedSmall(t)
	policy, recipe := b.policyOf(t, "a", 2, "policy.max_positions=600", "rollout.max_tokens=600",
		"rollout.max_turn_tokens=500", "rollout.max_turns=1", "evaluation.greedy=false", "evaluation.problems=3")
	_, err := b.evaluate(workflows.EvaluateInput{Run: "e", RecipeYAML: recipe, RecipeFile: "r", Policy: policy})
	require.NoError(t, err)
	view, err := analysis.New(b.store).Visible(t.Context(), "e")
	require.NoError(t, err)
	rows, err := view.EvaluationRows(t.Context())
	require.NoError(t, err)
	longest := int32(0)
	for _, r := range rows[0].Rows {
		longest = max(longest, r.Tokens)
	}
	require.Greater(t, longest, int32(256), "an untrained policy seldom ends its turn")
}

// Three agents debate each answer. The record holds each proposal, and deciding them again gives the same.
func TestAnEvaluationByDebate(t *testing.T) {
	ctx := t.Context()
	b, _ := trainedSmall(t)
	policy, recipe := b.policyOf(t, "a", 2, "evaluation.debate={agents: 3, rounds: 1, aggressive: true}",
		"evaluation.samples=2", "evaluation.problems=6", "evaluation.greedy=false", "evaluation.shard_problems=4",
		"policy.max_positions=600", "rollout.max_tokens=600")
	in := workflows.EvaluateInput{Run: "e", RecipeYAML: recipe, RecipeFile: "r", Policy: policy}
	out, err := b.evaluate(in)
	require.NoError(t, err)
	require.Equal(t, 12, out.Summary.Trajectories, "a debate is a sample")
	record := analysis.New(b.store)
	overview, err := record.Overview(ctx, "e")
	require.NoError(t, err)
	debates := overview.Evaluations[0].Debates
	require.NotNil(t, debates)
	require.Equal(t, 12, debates.Rounds[0].Debates)
	report, err := verify.Run(ctx, record.Store(), "e")
	require.NoError(t, err)
	require.Empty(t, report.Faults)
}
