package activities

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/ropewalk/ropewalk/activities/learn"
	"github.com/ropewalk/ropewalk/activities/prepare"
	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/resolver"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// The step that stepOf makes: 4 groups of 6 samples in shards of 2 groups.
const (
	benchGroups  = 4
	benchSamples = 6
	benchShards  = 2
)

var benchRecipe = []string{
	"rollout.prompts=4", "rollout.samples_per_prompt=6", "rollout.shard_groups=2", "resample.vspo=null",
	"resample.roc.keep=4", "resample.roc.min_positive=1", "resample.roc.min_negative=1",
	"evaluation.problems=6", "optimizer.minibatches=1",
}

// stepBench is the inside of a worker with a fake engine and sandbox, and a run whose recipe and first step's prompts
// are committed.
type stepBench struct {
	t       testing.TB
	deps    *stage.Worker
	scope   api.Scope
	prompts schema.Ref
	policy  api.PolicyRef
}

func stepOf(t *testing.T, engine policy.Engine, executor sandbox.Executor) *stepBench {
	t.Helper()
	return stepWith(t, engine, executor)
}

// stepWith is stepOf with more recipe overrides.
func stepWith(t testing.TB, engine policy.Engine, executor sandbox.Executor, set ...string) *stepBench {
	t.Helper()
	deps, err := New(stage.Options{Store: mem.New(), Trainer: engine, Rollout: engine, Sandbox: executor,
		Tier: sandbox.TierFull, Code: strings.Repeat("c", 64), Scratch: t.TempDir()})
	require.NoError(t, err)
	b := &stepBench{t: t, deps: deps, scope: api.Scope{Run: "r", Step: 1},
		policy: api.PolicyRef{Digest: strings.Repeat("e", 64)}}
	published(deps, b.policy.Digest)
	resolved, err := recipes.Resolve("quickstart", "", slices.Concat(benchRecipe, set), nil, nil)
	require.NoError(t, err)
	resolved, err = prepare.PrepareRun{Worker: deps}.PinTools(t.Context(), resolved, schema.Ref{}, false)
	require.NoError(t, err)
	b.scope.Config, err = commitRecipe(t.Context(), deps, "r", schema.AtInit("r", schema.StagePrepare),
		resolved, enginepool.Choice{Kind: "cpu"})
	require.NoError(t, err)
	loop, err := deps.Recipes.Loop(&resolved.Recipe, resolver.Sampling{Temperature: 1})
	require.NoError(t, err)
	var rows []schema.PromptRow
	for g := range benchGroups {
		row, err := loop.PromptRow(t.Context(), 1, g, calc.Training(1, 1, g, calc.EqualShares(2, 3)))
		require.NoError(t, err)
		rows = append(rows, row)
	}
	b.prompts = commitRows(b, schema.At("r", 1, schema.StagePrompts), rows)
	b.policy.Manifest = b.prompts // lineage requires some manifest; any will do here
	return b
}

// commitRecipe prepares a run that trains.
func commitRecipe(ctx context.Context, d *stage.Worker, run string, place schema.Place, resolved *recipes.Resolved,
	engine enginepool.Choice) (schema.Ref, error) {
	_, ref, err := prepare.PrepareRun{Worker: d}.CommitPrepared(ctx, api.PrepareInput{Run: run}, place, resolved,
		engine)
	return ref, err
}

// UseRecord replaces the record that the stages read and commit to.
func UseRecord(d *stage.Worker, record *commit.Writer) {
	d.Record, d.Recipes.Records.Record = record, record
}

// published makes a policy resident in the engine that generates: these tests commit no checkpoint that it could load.
func published(d *stage.Worker, digest string) {
	_, sampler := d.Engines.Pool.CPU()
	sampler.Mark(policy.RolePolicy, digest, false)
}

// fakeEngine is what the engines of these tests have in common: they can do all that recipes ask of a sampler.
type fakeEngine struct{ policy.Engine }

func (fakeEngine) Capabilities() policy.Capabilities {
	return policy.Capabilities{TokenIDs: true, LogProbs: true, TopLogProbs: 20, Entropy: policy.EntropyFull,
		Temperature: true, RowSeeds: true, Weights: policy.WeightsLoad}
}

func (fakeEngine) Describe() policy.Description { return policy.Description{Device: "a fake"} }

// commitRows commits rows as the only shard of a place, made from inputs.
func commitRows[R schema.Row](b *stepBench, place schema.Place, rows []R, inputs ...schema.Ref) schema.Ref {
	b.t.Helper()
	w := &stage.Draft{Worker: b.deps, Place: place, Manifest: schema.NewManifest(place, b.deps.Code, strings.Repeat("d",
		64))}
	w.Manifest.Inputs = append(w.Manifest.Inputs, inputs...)
	require.NoError(b.t, stage.Put(b.t.Context(), w, rows))
	_, ref, _, err := b.deps.Record.Commit(b.t.Context(), w.Manifest)
	require.NoError(b.t, err)
	return ref
}

// do executes one activity as a worker would.
func do[I, O any](b *stepBench, execute func(context.Context, *stage.Env, I) (O, error), in I) (O, error) {
	b.t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(stage.Of(execute).Activity, activity.RegisterOptions{Name: "stage"})
	var out O
	value, err := env.ExecuteActivity("stage", in)
	if err != nil {
		return out, err
	}
	require.NoError(b.t, value.Get(&out))
	return out, nil
}

// rewarded is the input of a stage that reads the step's rewards, and whatever more.
func (b *stepBench) rewarded(rewards schema.Ref, more ...api.StageRef) api.StageInput {
	return api.StageInput{Scope: b.scope, Made: append(api.Made{{Stage: schema.StageReward, Ref: rewards}}, more...)}
}

// rowsAt reads a table's rows behind manifests.
func rowsAt[R schema.Row](b *stepBench, refs ...schema.Ref) []R {
	b.t.Helper()
	rows, err := record.Read[R](b.t.Context(), b.deps.Records, refs...)
	require.NoError(b.t, err)
	return rows
}

// stage commits the stage manifest over shard manifests.
func (b *stepBench) stage(stage string, turn int, parts ...schema.Ref) schema.Ref {
	b.t.Helper()
	out, err := do(b, learn.CommitStages{Worker: b.deps}.Execute,
		api.CommitInput{Scope: b.scope, Stages: []api.StageParts{{Stage: stage, Turn: turn, Parts: parts}}})
	require.NoError(b.t, err)
	return out.Stages[0].Ref
}
