package activities_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/gc"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// firstEvaluation returns the manifest of a run's evaluation before step 1, and whether the run has copied it.
func (b *bench) firstEvaluation(t *testing.T, run string) (schema.Manifest, bool) {
	t.Helper()
	m, _, found, err := b.record.Lookup(t.Context(), schema.AtInit(run, schema.StageEvaluate))
	require.NoError(t, err)
	require.True(t, found)
	return m, b.adopted(t, schema.AtInit(run, "timings_run"), schema.StageEvaluate)
}

// evaluationNotes lists the notes about evaluations that runs share.
func (b *bench) evaluationNotes(t *testing.T) (out []string) {
	t.Helper()
	for _, key := range keys(t, b.store) {
		if strings.HasPrefix(key, "warmstarts/") && schema.IsNote(key) {
			out = append(out, key)
		}
	}
	return out
}

// other is another method than that of the tiny recipe, from the same first policy.
var other = []string{"steps=1", "resample.vspo=null", "resample.roc=null", "advantage.std=false", "loss.clip_high=0.3",
	"optimizer.lr=0.0001", "rollout.prompts=4", "rollout.samples_per_prompt=4", "rollout.shard_groups=2",
	"rollout.mode=interleaved", "checkpoint.keep_last=3", "record.compact=true"}

// A run copies the evaluation of its first policy from an earlier one, and commits what it commits when it evaluates
// the policy itself. The earlier run can then be deleted.
func TestRunsShareTheEvaluationOfTheirFirstPolicy(t *testing.T) {
	b, alone := newBench(t, mem.New()), newBench(t, mem.New())
	trainTiny(t, b, "first", "steps=1")
	whole := trainTiny(t, b, "second", other...)
	require.Len(t, b.evaluationNotes(t), 1)
	own := trainTiny(t, alone, "second", other...)
	require.Equal(t, own.Policy.Digest, whole.Policy.Digest)
	require.Equal(t, dataDigests(t.Context(), t, alone.store, "second"), dataDigests(t.Context(), t, b.store, "second"))
	copied, shared := b.firstEvaluation(t, "second")
	require.True(t, shared)
	sampled, shared := alone.firstEvaluation(t, "second")
	require.False(t, shared)
	require.Equal(t, sampled, copied)
	_, shared = b.firstEvaluation(t, "first")
	require.False(t, shared)

	trainTiny(t, b, "colder", append(other, "evaluation.temperature=0.5")...)
	changed, shared := b.firstEvaluation(t, "colder")
	require.False(t, shared)
	require.NotEqual(t, copied.Shards[0].Digest, changed.Shards[0].Digest)
	require.Len(t, b.evaluationNotes(t), 2)

	_, err := gc.DeleteRun(t.Context(), b.store, "first", gc.Removal{WarmStarts: true, Delete: true})
	require.NoError(t, err)
	collected, err := gc.Collect(t.Context(), b.store, gc.Options{Delete: true, Unfinished: true})
	require.NoError(t, err)
	require.Zero(t, collected.Unknown)
	b.sound(t, "second")
	b.deps.Record.Forget("first")
	trainTiny(t, b, "third", "steps=1")
	_, shared = b.firstEvaluation(t, "third")
	require.False(t, shared, "the note names what is gone")
	trainTiny(t, b, "fourth", "steps=1")
	_, shared = b.firstEvaluation(t, "fourth")
	require.True(t, shared)
}

// An evaluation whose bytes are damaged is not copied: the run makes it itself.
func TestADamagedEvaluationIsNotShared(t *testing.T) {
	b := newBench(t, mem.New())
	trainTiny(t, b, "first", "steps=1")
	m, _ := b.firstEvaluation(t, "first")
	require.NoError(t, b.store.Put(t.Context(), m.Shards[0].Key, []byte("damaged")))
	b.deps.Record.Forget("first")
	trainTiny(t, b, "second", "steps=1")
	whole, shared := b.firstEvaluation(t, "second")
	require.False(t, shared)
	require.Equal(t, m.Shards[0].Digest, whole.Shards[0].Digest)
	b.sound(t, "second")

	require.NoError(t, b.store.Put(t.Context(), b.evaluationNotes(t)[0], []byte("{")))
	trainTiny(t, b, "third", "steps=1")
	_, shared = b.firstEvaluation(t, "third")
	require.False(t, shared)
	trainTiny(t, b, "fourth", "steps=1")
	_, shared = b.firstEvaluation(t, "fourth")
	require.True(t, shared)
}
