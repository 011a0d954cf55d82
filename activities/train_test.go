package activities_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// small makes the quickstart take only seconds: every stage runs, and little is learnt.
var small = []string{
	"steps=2", "policy.layers=1", "policy.hidden=32", "policy.heads=1", "policy.kv_heads=1", "policy.ffn=64",
	"warm_start.steps=30", "warm_start.batch=16", "rollout.prompts=4", "rollout.samples_per_prompt=4",
	"rollout.shard_groups=2",
	"resample.roc.keep=2", "resample.roc.min_positive=1", "resample.roc.min_negative=1",
	"evaluation.problems=6", "evaluation.samples=1", "optimizer.minibatches=1", "checkpoint.every=0",
	"checkpoint.keep_last=1", "checkpoint.keep_best=0",
}

// bench is the inside of a worker over a store of the test.
type bench struct {
	store  store.Store
	record *commit.Writer
	deps   *stage.Worker
}

func newBench(t *testing.T, objects store.Store) *bench {
	t.Helper()
	deps := pipelinetest.Deps(t, objects, pipelinetest.Wrap{})
	return &bench{store: objects, record: commit.New(objects), deps: deps}
}

// train runs TrainRun with the real activities in Temporal's test environment.
func (b *bench) train(t *testing.T, in workflows.TrainRunInput) (workflows.TrainRunResult, error) {
	t.Helper()
	return pipelinetest.Run[workflows.TrainRunResult](pipelinetest.Environment(b.deps), workflows.TrainRunName, in)
}

func TestTrainingIsAFunctionOfItsInputs(t *testing.T) {
	ctx := context.Background()
	first := newBench(t, mem.New())
	a, err := first.train(t, workflows.TrainRunInput{Run: "a", Recipe: "quickstart", Set: small})
	require.NoError(t, err)
	second := newBench(t, mem.New())
	b, err := second.train(t, workflows.TrainRunInput{Run: "b", Recipe: "quickstart", Set: small})
	require.NoError(t, err)
	require.Equal(t, a.Policy.Digest, b.Policy.Digest)
	require.Equal(t, a.Final, b.Final)
	require.Equal(t, dataDigests(ctx, t, first.store, "a"), dataDigests(ctx, t, second.store, "b"))

	seed := uint64(2)
	c, err := second.train(t, workflows.TrainRunInput{Run: "c", Recipe: "quickstart", Set: small, Seed: &seed})
	require.NoError(t, err)
	require.NotEqual(t, a.Policy.Digest, c.Policy.Digest)
}

// dataDigests lists the data shards of a run, without timings and without the run's name.
func dataDigests(ctx context.Context, t *testing.T, s store.Store, run string) []string {
	t.Helper()
	objects, err := s.List(ctx, schema.RunPrefix(run)+"table=")
	require.NoError(t, err)
	require.NotEmpty(t, objects)
	var out []string
	for _, o := range objects {
		key := strings.TrimPrefix(o.Key, schema.RunPrefix(run))
		if !strings.HasPrefix(key, "table=timings/") {
			out = append(out, fmt.Sprint(key, " ", o.Size))
		}
	}
	return out
}
