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

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// The step that laneOf makes: 4 groups of 6 samples in shards of 2 groups.
const (
	laneGroups  = 4
	laneSamples = 6
	laneShards  = 2
)

var laneRecipe = []string{
	"rollout.prompts=4", "rollout.oversample=6", "rollout.shard_groups=2", "resample.vspo=null",
	"resample.roc.keep=4", "resample.roc.min_positive=1", "resample.roc.min_negative=1",
	"evaluation.problems=6", "optimizer.minibatches=1",
}

// laneBench is a worker's inside with stand-ins for engine and sandbox, and a run whose recipe and
// first step's prompts are committed.
type laneBench struct {
	t       *testing.T
	deps    *Deps
	scope   wire.Scope
	prompts schema.Ref
	policy  wire.PolicyRef
}

func laneOf(t *testing.T, engine policy.Engine, executor sandbox.Executor) *laneBench {
	t.Helper()
	return laneWith(t, engine, executor)
}

// laneWith is laneOf with more of the recipe set.
func laneWith(t *testing.T, engine policy.Engine, executor sandbox.Executor, set ...string) *laneBench {
	t.Helper()
	deps, err := New(Options{Store: mem.New(), Trainer: engine, Rollout: engine, Sandbox: executor, Tier: sandbox.TierFull, Code: strings.Repeat("c", 64), Scratch: t.TempDir()})
	require.NoError(t, err)
	b := &laneBench{t: t, deps: deps, scope: wire.Scope{Run: "r", Step: 1}, policy: wire.PolicyRef{Digest: strings.Repeat("e", 64)}}
	deps.Rollout.resident = b.policy.Digest // nothing is to be loaded
	resolved, err := recipes.Resolve("quickstart", "", slices.Concat(laneRecipe, set), nil, nil)
	require.NoError(t, err)
	b.scope.Config, err = PrepareRun{deps}.commitRecipe(t.Context(), "r", schema.AtInit("r", wire.StagePrepare), resolved, engineChoice{kind: recipes.EngineCPU})
	require.NoError(t, err)
	loop, err := deps.loop(&resolved.Recipe, 1)
	require.NoError(t, err)
	var rows []schema.PromptRow
	for g := range laneGroups {
		rows = append(rows, loop.PromptRow(1, g, calc.Training(1, 1, g, calc.EqualShares(2, 3))))
	}
	b.prompts = commitRows(b, schema.At("r", 1, wire.StagePrompts), rows)
	b.policy.Manifest = b.prompts // lineage wants a manifest; which one does not matter here
	return b
}

// commitRows commits rows as the one shard of a place, made from inputs.
func commitRows[R schema.Row](b *laneBench, place schema.Place, rows []R, inputs ...schema.Ref) schema.Ref {
	b.t.Helper()
	w := &draft{deps: b.deps, place: place, manifest: schema.NewManifest(place, b.deps.Code, strings.Repeat("d", 64))}
	w.manifest.Inputs = append(w.manifest.Inputs, inputs...)
	require.NoError(b.t, put(b.t.Context(), w, rows))
	_, ref, _, err := b.deps.Record.Commit(b.t.Context(), w.manifest)
	require.NoError(b.t, err)
	return ref
}

// do executes one activity as a worker would.
func do[I, O any](b *laneBench, execute func(context.Context, I) (O, error), in I) (O, error) {
	b.t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(execute, activity.RegisterOptions{Name: "stage"})
	var out O
	value, err := env.ExecuteActivity("stage", in)
	if err != nil {
		return out, err
	}
	require.NoError(b.t, value.Get(&out))
	return out, nil
}

// rows reads a table's rows behind manifests.
func rowsAt[R schema.Row](b *laneBench, refs ...schema.Ref) []R {
	b.t.Helper()
	rows, err := read[R](b.t.Context(), b.deps, refs...)
	require.NoError(b.t, err)
	return rows
}

// stage commits the stage manifest over shard manifests.
func (b *laneBench) stage(stage string, turn int, parts ...schema.Ref) schema.Ref {
	b.t.Helper()
	out, err := do(b, CommitStages{b.deps}.Execute, wire.CommitInput{Scope: b.scope, Stages: []wire.StageParts{{Stage: stage, Turn: turn, Parts: parts}}})
	require.NoError(b.t, err)
	return out.Refs[0]
}
