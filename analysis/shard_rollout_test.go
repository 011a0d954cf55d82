package analysis_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/internal/testing/tamper"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// tiny makes the quickstart a matter of seconds: every stage runs, little is learnt.
var tiny = []string{
	"steps=3", "policy.layers=1", "policy.hidden=64", "policy.heads=2", "policy.kv_heads=2", "policy.ffn=128",
	"warm_start.steps=100", "warm_start.batch=32", "rollout.prompts=8", "rollout.samples_per_prompt=8",
	"rollout.shard_groups=4",
	"resample.roc.keep=4", "resample.roc.min_positive=1", "resample.roc.min_negative=1", "evaluation.every=2",
	"evaluation.problems=6", "evaluation.samples=1", "optimizer.minibatches=1", "optimizer.warmup_steps=1",
	"checkpoint.every=0", "checkpoint.keep_last=1", "checkpoint.keep_best=0",
}

// trainForReal runs the workflow and its activities, the engine and Python included.
func trainForReal(t *testing.T, objects store.Store, wrap pipelinetest.Wrap, set ...string) workflows.TrainRunResult {
	t.Helper()
	env := pipelinetest.Environment(pipelinetest.Deps(t, objects, wrap))
	out, err := pipelinetest.Run[workflows.TrainRunResult](env, workflows.TrainRunName,
		workflows.TrainRunInput{Run: "r", Recipe: "quickstart", Set: slices.Concat(tiny, set)})
	require.NoError(t, err)
	return out
}

// What the activities really commit is what this package reads.
func TestTheRealPipeline(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a tiny policy")
	}
	ctx := context.Background()
	objects := mem.New()
	result := trainForReal(t, objects, pipelinetest.Wrap{})
	record := analysis.New(objects)

	v, err := verify.Run(ctx, record.Store(), "r")
	require.NoError(t, err)
	require.Empty(t, v.Faults)
	require.Equal(t, 3, v.Heads)
	require.Zero(t, v.Orphans)
	require.Positive(t, v.Checkpoints) // the warm start's, and those of steps that had something to learn from

	f, err := record.Figures(ctx, "r")
	require.NoError(t, err)
	require.EqualValues(t, 3*8*8, f.Trajectories)
	require.Positive(t, f.Tokens)
	require.Positive(t, f.RLSeconds)
	require.Positive(t, f.WarmStartSeconds)
	require.Greater(t, f.OrchestrationShare, 0.0)
	require.Less(t, f.OrchestrationShare, 1.0)

	overview, err := record.Overview(ctx, "r")
	require.NoError(t, err)
	require.Equal(t, string(status.Done), overview.Run.Status)
	require.Len(t, overview.Steps, 3)
	require.Len(t, overview.Evaluations, 3)
	require.Equal(t, result.Final, overview.Evaluations[2].Summary)
	require.Equal(t, result.Final.Success, *overview.Run.After)

	checkBeforeTraining(t, objects)

	view, err := record.Step(ctx, "r", 2, analysis.Choice{N: 6, Group: analysis.AnyGroup})
	require.NoError(t, err)
	require.Len(t, view.Episodes, 6)
	var text bytes.Buffer
	require.NoError(t, view.Write(&text))
	require.NoError(t, overview.Write(&text))
	t.Log(text.String())
}

// checkBeforeTraining checks the properties that step 1 has committed: readers take them, they follow from the rows,
// and a forged one is a fault.
func checkBeforeTraining(t *testing.T, objects *mem.Store) {
	t.Helper()
	record, selection := analysis.New(objects), schema.At("r", 1, schema.StageResample)
	said, err := record.Properties(t.Context(), "r")
	require.NoError(t, err)
	require.NotNil(t, said)
	require.Equal(t, 64, said.Trajectories)
	require.Equal(t, 8, said.Groups)
	require.True(t, said.EntropiesKnown)
	offered := analysis.Offers(said)
	require.Equal(t, "zero_variance", offered[0].Key)
	require.Equal(t, said.ZeroVariance, *offered[0].Value)

	forged := tamper.Copy(t, objects)
	key := tamper.Manifest(t, forged, selection, func(m *schema.Manifest) { m.Stats["before_success"] += 0.125 })
	v, err := verify.Run(t.Context(), forged, "r")
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(v.Faults, func(f verify.Fault) bool {
		return f.Key == key && strings.Contains(f.Message, "before_success")
	}), v.Faults)

	rates, err := record.ErrorRates(t.Context(), "r")
	require.NoError(t, err)
	for _, r := range rates {
		require.Equal(t, "tool calls", r.Kind)
		require.Less(t, r.First.Step, r.Last.Step)
		require.Equal(t, r.Last.Rate <= r.High, r.NoHigher)
	}
}
