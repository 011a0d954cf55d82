package activities_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/ropewalk/ropewalk/activities"
	"github.com/ropewalk/ropewalk/activities/replay"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// runReplay runs ReplayStage with the real activities of a worker that has neither engine nor sandbox: a machine that
// never saw the run.
func runReplay(t *testing.T, objects store.Store, in workflows.ReplayStageInput) (workflows.ReplayStageResult, error) {
	t.Helper()
	deps, err := activities.New(stage.Options{Store: objects, Code: strings.Repeat("c", 64), Scratch: t.TempDir()})
	require.NoError(t, err)
	env := pipelinetest.Environment(deps)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: rand.Text()}) // each replay is another workflow
	return pipelinetest.Run[workflows.ReplayStageResult](env, workflows.ReplayStageName, in)
}

// trained returns copies of the record of one small run, one for each test.
func trained(t *testing.T) func() *mem.Store {
	t.Helper()
	objects := mem.New()
	trainTiny(t, newBench(t, objects), "r", "steps=2")
	return func() *mem.Store { return copied(t, objects) }
}

func copied(t *testing.T, from store.Store) *mem.Store {
	t.Helper()
	to := mem.New()
	for _, key := range keys(t, from) {
		data, err := from.Get(t.Context(), key)
		require.NoError(t, err)
		require.NoError(t, to.Put(t.Context(), key, data))
	}
	return to
}

func keys(t *testing.T, s store.Store) []string {
	t.Helper()
	listed, err := s.List(t.Context(), "")
	require.NoError(t, err)
	out := make([]string, len(listed))
	for i, o := range listed {
		out[i] = o.Key
	}
	return out
}

func TestReplay(t *testing.T) {
	copyRecord := trained(t)
	t.Run("generations", func(t *testing.T) { generations(t, copyRecord) })
	t.Run("refusals", func(t *testing.T) { refusals(t, copyRecord) })
	t.Run("check", func(t *testing.T) { check(t, copyRecord) })
}

func generations(t *testing.T, copyRecord func() *mem.Store) {
	t.Run("unchanged inputs give the same digests", func(t *testing.T) {
		objects := copyRecord()
		before := keys(t, objects)
		out, err := runReplay(t, objects, workflows.ReplayStageInput{Run: "r", Step: 1, From: "reward"})
		require.NoError(t, err)
		require.Equal(t, 1, out.Gen)
		require.Len(t, out.Stages, 3)
		for _, s := range out.Stages {
			require.True(t, s.Same, s.Stage)
			require.Zero(t, s.Differs)
			require.Empty(t, s.Code)
		}
		require.Equal(t, 2, out.Stages[0].Shards)
		added := 0
		for _, key := range keys(t, objects) {
			if !strings.Contains(key, "gen=1") {
				require.Contains(t, before, key, "only generation 1 is written")
				continue
			}
			added++
		}
		// The claim and its recipe; rewards of 2 shards, their stage, selection and batch.
		require.Equal(t, 2+2*2+1+2+2, added)

		again, err := runReplay(t, objects, workflows.ReplayStageInput{Run: "r", Step: 1, From: "resample",
			Through: "resample"})
		require.NoError(t, err)
		require.Equal(t, 2, again.Gen, "each replay has a generation of its own")
		require.Len(t, again.Stages, 1)
		require.True(t, again.Stages[0].Same)
	})
	t.Run("another setting changes what follows from it", func(t *testing.T) {
		objects := copyRecord()
		out, err := runReplay(t, objects, workflows.ReplayStageInput{Run: "r", Step: 2, From: "reward",
			Set: []string{"resample.roc=null", "resample.vspo=null"}})
		require.NoError(t, err)
		require.True(t, out.Stages[0].Same, "rewards do not follow from the selection")
		require.False(t, out.Stages[1].Same)
		require.False(t, out.Stages[2].Same)
		m, _, found, err := commit.New(objects).Lookup(t.Context(), schema.At("r", 2, schema.StageReplay).WithGen(1))
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, "reward", m.Note["from"])
		require.Equal(t, "advantage", m.Note["through"])
		require.Equal(t, `["resample.roc=null","resample.vspo=null"]`, m.Note["set"])
		recipe, err := objects.Get(t.Context(), m.Shards[0].Key)
		require.NoError(t, err)
		require.Equal(t, m.Config, schema.Digest(recipe))
		require.NotContains(t, string(recipe), `"vspo"`)
	})
	t.Run("a retried claim is adopted", func(t *testing.T) {
		objects := copyRecord()
		claim := func(name string) api.ReplayPrepared {
			deps, err := activities.New(stage.Options{Store: objects, Code: strings.Repeat("c", 64),
				Scratch: t.TempDir()})
			require.NoError(t, err)
			env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
			activities.Register(env, deps)
			value, err := env.ExecuteActivity(api.PrepareReplay,
				api.ReplayInput{Run: "r", Step: 1, Stages: []string{"reward", "resample", "advantage"}, Claim: name})
			require.NoError(t, err)
			var out api.ReplayPrepared
			require.NoError(t, value.Get(&out))
			return out
		}
		first := claim("a")
		require.False(t, first.Adopted)
		require.Equal(t, "VSPO, then RoC", first.Chain)
		second := claim("a")
		require.True(t, second.Adopted)
		second.Adopted, second.Timing, first.Timing = false, api.Timing{}, api.Timing{}
		require.Equal(t, first, second)
		require.Equal(t, 2, claim("b").Gen)
	})
	t.Run("a step without a head is replayed from what it has", func(t *testing.T) {
		objects := copyRecord()
		for _, key := range []string{schema.HeadKey("r", "2"), schema.At("r", 2, schema.StageAdvantage).ManifestKey()} {
			require.NoError(t, objects.Delete(t.Context(), key))
		}
		out, err := runReplay(t, objects, workflows.ReplayStageInput{Run: "r", Step: 2, From: "resample"})
		require.NoError(t, err)
		require.True(t, out.Stages[0].Same)
		require.Empty(t, out.Stages[1].Old, "the step had made no batch")
		out, err = runReplay(t, objects, workflows.ReplayStageInput{Run: "r", Step: 2, From: "advantage"})
		require.NoError(t, err)
		require.Equal(t, 2, out.Gen)
		require.Empty(t, out.Stages[0].Old, "another replay's batch is not the step's")
	})
}

func refusals(t *testing.T, copyRecord func() *mem.Store) {
	assembled := schema.At("r", 1, schema.StageAssemble).WithShard(1)
	for name, c := range map[string]struct {
		in     workflows.ReplayStageInput
		damage func(t *testing.T, s *mem.Store)
		kind   string
		want   string
	}{
		"an unknown run": {in: workflows.ReplayStageInput{Run: "x", Step: 1, From: "reward"},
			kind: api.FailBadInput, want: "no such run in the record: x"},
		"an unknown step": {in: workflows.ReplayStageInput{Run: "r", Step: 9, From: "reward"},
			kind: api.FailBadInput, want: "step 9 of run r has committed nothing"},
		"an unknown field": {in: workflows.ReplayStageInput{Run: "r", Step: 1, From: "reward",
			Set: []string{"resample.rok.keep=1"}}, kind: api.FailBadInput, want: "did you mean resample.roc.keep?"},
		"a combination": {in: workflows.ReplayStageInput{Run: "r", Step: 1, From: "reward",
			Set: []string{"resample.roc.keep=9"}}, kind: api.FailBadInput,
			want: "must be ≤ rollout.samples_per_prompt (8), got 9"},
		"an unread field": {in: workflows.ReplayStageInput{Run: "r", Step: 1, From: "advantage",
			Set: []string{"reward.fallback=true", "advantage.std=false"}}, kind: api.FailBadInput,
			want: "--set reward.fallback=true: no replayed stage reads it; advantage reads advantage.*"},
		"no buffer": {in: workflows.ReplayStageInput{Run: "r", Step: 1, From: "buffer"},
			kind: api.FailBadInput, want: "buffer runs only if the recipe has `replay`, and that of run r does not"},
		"an engine's field": {in: workflows.ReplayStageInput{Run: "r", Step: 1, From: "reward",
			Set: []string{"policy.layers=3"}}, kind: api.FailBadInput,
			want: "resample reads resample.* and filters and pipeline.mixed_groups and seed"},
		"a step in its beginning": {in: workflows.ReplayStageInput{Run: "r", Step: 2, From: "reward"},
			kind: api.FailBadInput, want: "step 2 of run r has not committed assemble, which reward reads",
			damage: func(t *testing.T, s *mem.Store) {
				require.NoError(t, s.Delete(t.Context(), schema.HeadKey("r", "2")))
				require.NoError(t,
					s.Delete(t.Context(), schema.At("r", 2, schema.StageAssemble).ManifestKey()))
			}},
		"a missing shard": {in: workflows.ReplayStageInput{Run: "r", Step: 1, From: "reward"}, kind: api.FailCorrupt,
			want: "it is missing though a manifest lists it", damage: func(t *testing.T, s *mem.Store) {
				require.NoError(t, s.Delete(t.Context(), shardOf(t, s, assembled)))
			}},
		"a damaged shard": {in: workflows.ReplayStageInput{Run: "r", Step: 1, From: "reward"}, kind: api.FailCorrupt,
			want: "table=trajectories/step=1/gen=0/00001-", damage: func(t *testing.T, s *mem.Store) {
				require.NoError(t, s.Put(t.Context(), shardOf(t, s, assembled), []byte("damaged")))
			}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := copyRecord()
			if c.damage != nil {
				c.damage(t, objects)
			}
			before := keys(t, objects)
			_, err := runReplay(t, objects, c.in)
			var failure *temporal.ApplicationError
			require.ErrorAs(t, err, &failure)
			require.Equal(t, c.kind, failure.Type(), failure.Message())
			require.Contains(t, failure.Message(), c.want)
			require.Equal(t, before, keys(t, objects), "nothing is written")

			err = askedBefore(t, objects, c.in)
			if c.kind != api.FailBadInput {
				require.NoError(t, err, "only the replay reads the rows")
				return
			}
			require.ErrorAs(t, err, &failure, "it is refused before it is started")
			require.Equal(t, c.kind, failure.Type())
			require.Contains(t, failure.Message(), c.want)
		})
	}
}

// askedBefore asks outside Temporal whether a replay is possible.
func askedBefore(t *testing.T, objects store.Store, in workflows.ReplayStageInput) error {
	t.Helper()
	stages, err := api.Replayed(in.From, in.Through)
	require.NoError(t, err)
	return readerOf(t, objects).CheckReplay(t.Context(), api.ReplayInput{Run: in.Run, Step: in.Step, Stages: stages,
		Set: in.Set, Follow: in.Through == ""})
}

func readerOf(t *testing.T, objects store.Store) replay.Reader {
	t.Helper()
	reader, err := replay.NewReader(objects, strings.Repeat("c", 64))
	require.NoError(t, err)
	return reader
}

func shardOf(t *testing.T, s store.Store, place schema.Place) string {
	t.Helper()
	m, _, found, err := commit.New(s).Lookup(t.Context(), place)
	require.NoError(t, err)
	require.True(t, found)
	return m.Shards[0].Key
}

func check(t *testing.T, copyRecord func() *mem.Store) {
	t.Run("finds everything the same and writes nothing", func(t *testing.T) {
		objects := copyRecord()
		before := keys(t, objects)
		out, err := runReplay(t, objects, workflows.ReplayStageInput{Run: "r", Check: true})
		require.NoError(t, err)
		require.Equal(t, []int{1, 2}, out.Check.Steps)
		require.Equal(t, 2*(2+1+1), out.Check.Shards)
		require.Empty(t, out.Check.Differs)
		require.Empty(t, out.Check.Codes)
		require.Equal(t, before, keys(t, objects))
	})
	t.Run("names the shard that differs", func(t *testing.T) {
		objects := copyRecord()
		forgeBatch(t, objects)
		out, err := runReplay(t, objects, workflows.ReplayStageInput{Run: "r", Check: true})
		require.NoError(t, err)
		require.Len(t, out.Check.Differs, 1)
		require.Equal(t, "advantage", out.Check.Differs[0].Stage)
		require.Equal(t, 1, out.Check.Differs[0].Step)
		require.Equal(t, []string{strings.Repeat("d", 64)}, out.Check.Codes)
	})
	t.Run("refuses an unknown run", func(t *testing.T) {
		objects := copyRecord()
		_, err := runReplay(t, objects, workflows.ReplayStageInput{Run: "x", Check: true})
		require.ErrorContains(t, err, "no such run in the record: x")
		_, _, err = readerOf(t, objects).CheckRun(t.Context(), "x", nil)
		require.ErrorContains(t, err, "no such run in the record: x")
	})
	t.Run("has the same result outside Temporal", func(t *testing.T) {
		for _, change := range []func(*testing.T, *mem.Store){func(*testing.T, *mem.Store) {}, forgeBatch} {
			objects := copyRecord()
			change(t, objects)
			before := keys(t, objects)
			want, err := runReplay(t, objects, workflows.ReplayStageInput{Run: "r", Check: true})
			require.NoError(t, err)
			var reported []int
			plan, checked, err := readerOf(t, objects).CheckRun(t.Context(), "r", func(done, total int) {
				require.Equal(t, 2, total)
				reported = append(reported, done)
			})
			require.NoError(t, err)
			require.Equal(t, []int{1, 2}, reported)
			got := workflows.CheckState{Steps: plan.Steps, Next: len(checked), Code: plan.Code}
			for _, step := range checked {
				got.Add(step)
			}
			require.Equal(t, *want.Check, got)
			require.Equal(t, before, keys(t, objects), "nothing is written")
		}
	})
	t.Run("names a damaged shard outside Temporal", func(t *testing.T) {
		objects := copyRecord()
		key := shardOf(t, objects, schema.At("r", 2, schema.StageAssemble).WithShard(1))
		require.NoError(t, objects.Put(t.Context(), key, []byte("damaged")))
		_, _, err := readerOf(t, objects).CheckRun(t.Context(), "r", func(int, int) {})
		var failure *temporal.ApplicationError
		require.ErrorAs(t, err, &failure)
		require.Equal(t, api.FailCorrupt, failure.Type())
		require.Contains(t, failure.Message(), key)
	})
}
