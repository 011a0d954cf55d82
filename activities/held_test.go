package activities

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/data"
	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/activities/learn"
	"github.com/ropewalk/ropewalk/activities/resource"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/activities/verdict"
	"github.com/ropewalk/ropewalk/internal/prompts"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// manyTurns gives a trajectory room for many turns.
var manyTurns = []string{"rollout.max_turns=20", "rollout.max_tokens=4000", "rollout.max_turn_tokens=100",
	"policy.max_positions=4096"}

// turnsBench is a step whose policy follows a script of calls.
type turnsBench struct {
	*stepBench
	engine *scripted
	past   api.Past
	refs   []schema.Ref // everything committed, in order
}

func scriptedTurns(t *testing.T, turns int, settings ...string) *turnsBench {
	t.Helper()
	b := &turnsBench{engine: &scripted{}}
	b.stepBench = stepWith(t, b.engine, &printer{nth: -1}, slices.Concat(manyTurns, settings)...)
	b.engine.deps = b.deps
	for range turns {
		b.engine.script = append(b.engine.script, []string{"print(ROW)", "{not a call"})
	}
	return b
}

// worker switches to another worker.
func (b *turnsBench) worker() {
	b.t.Helper()
	deps, err := New(stage.Options{Store: b.deps.Store, Trainer: b.engine, Rollout: b.engine,
		Sandbox: &printer{nth: -1}, Tier: sandbox.TierFull, Code: b.deps.Code, Scratch: b.t.TempDir()})
	require.NoError(b.t, err)
	published(deps, b.policy.Digest)
	b.deps, b.engine.deps = deps, deps
}

// shard takes a shard from its prompts to its trajectories and calls between before each activity.
func (b *turnsBench) shard(shard int, between func()) (assembled schema.Ref) {
	b.t.Helper()
	b.past = api.Past{}
	commit := func(ref schema.Ref) { b.past.Last, b.refs = ref, append(b.refs, ref) }
	for turn := 0; ; turn++ {
		between()
		out, err := do(b.stepBench, episodes.GenerateRollouts{Worker: b.deps}.Execute, api.GenerateInput{Scope: b.scope,
			Past: b.past, Shard: shard, Turn: turn, Prompts: b.prompts, Policy: b.policy})
		require.NoError(b.t, err)
		commit(out.Manifest)
		if out.Calls == 0 {
			break
		}
		between()
		tools, err := do(b.stepBench, episodes.ExecuteToolCalls{Worker: b.deps}.Execute, api.ToolsInput{Scope: b.scope,
			Past: b.past, Shard: shard, Turn: turn, Prompts: b.prompts})
		require.NoError(b.t, err)
		commit(tools.Manifest)
	}
	between()
	out, err := do(b.stepBench, episodes.AssembleTrajectories{Worker: b.deps}.Execute, api.AssembleInput{Scope: b.scope,
		Past: b.past, Shard: shard, Prompts: b.prompts})
	require.NoError(b.t, err)
	b.refs = append(b.refs, out.Manifest)
	return out.Manifest
}

// Whatever a worker still holds of a shard's episodes, the manifests have the same bytes.
func TestSameBytesWhateverIsHeld(t *testing.T) {
	steady := scriptedTurns(t, 4)
	steady.shard(0, func() {})
	require.Len(t, steady.refs, 4+5+1)
	for name, between := range map[string]func(b *turnsBench) func(){
		"a worker for each activity": func(b *turnsBench) func() { return b.worker },
		"nothing is held":            func(b *turnsBench) func() { return func() { b.deps.Episodes = nil } },
		"no room": func(b *turnsBench) func() {
			return func() { b.deps.Episodes = resource.NewEpisodes(1) }
		},
		"one worker generates and another runs the calls": func(b *turnsBench) func() {
			other := b.deps
			b.worker()
			return func() { b.deps, other = other, b.deps; b.engine.deps = b.deps }
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := scriptedTurns(t, 4)
			b.shard(0, between(b))
			require.Equal(t, steady.refs, b.refs)
		})
	}
}

// The held episodes equal those rebuilt from the committed rows, in every field.
func TestHeldEpisodesAreThoseOfTheRecord(t *testing.T) {
	b := scriptedTurns(t, 3)
	compared := 0
	b.shard(0, func() {
		recipe, err := b.deps.Recipes.Recipe(t.Context(), b.scope)
		require.NoError(t, err)
		heldNow := b.deps.Episodes.Take(b.past.Last.Digest)
		if b.past.Last == (schema.Ref{}) {
			require.Nil(t, heldNow)
			return
		}
		require.Len(t, heldNow, 2*benchSamples)
		_, rebuilt, err := episodes.AsOf(t.Context(), b.deps, recipe, 0, b.prompts, b.past)
		require.NoError(t, err)
		require.Equal(t, rebuilt, heldNow)
		b.deps.Episodes.Put(b.past.Last.Digest, heldNow)
		compared++
	})
	require.Equal(t, 3+4, compared)
	require.Nil(t, b.deps.Episodes.Take(b.past.Last.Digest), "assembled episodes are not held")
}

// countingStore counts reads.
type countingStore struct {
	store.Store
	gets atomic.Int64
}

func (c *countingStore) Get(ctx context.Context, key string) ([]byte, error) {
	c.gets.Add(1)
	return c.Store.Get(ctx, key)
}

// A turn reads as much after many turns as after few.
func TestReadsGrowWithTheTurnsAndNotWithTheirSquare(t *testing.T) {
	reads := map[int]int64{}
	for _, turns := range []int{4, 8, 12} {
		b := scriptedTurns(t, turns)
		c := &countingStore{Store: b.deps.Store}
		b.deps.Store = c
		b.worker()
		b.shard(0, func() {})
		reads[turns] = c.gets.Load()
	}
	require.Equal(t, reads[8]-reads[4], reads[12]-reads[8])
}

// What a shard has committed can be found from its rewards alone.
func TestStagesAreCommittedFromTheRewards(t *testing.T) {
	b := scriptedTurns(t, 2)
	var rewards []schema.Ref
	for shard := range benchShards {
		assembled := b.shard(shard, func() {})
		scored, err := do(b.stepBench, verdict.ScoreRewards{Worker: b.deps}.Execute, api.ScoreInput{Scope: b.scope,
			Shard: shard, Trajectories: assembled})
		require.NoError(t, err)
		b.refs = append(b.refs, scored.Manifest)
		rewards = append(rewards, scored.Manifest)
		b.engine.script = b.engine.script[:1] // the second shard ends a turn earlier
	}
	out, err := do(b.stepBench, learn.CommitStages{Worker: b.deps}.Execute, api.CommitInput{Scope: b.scope,
		Rewards: rewards})
	require.NoError(t, err)
	var got []string
	var parts []schema.Ref
	for _, s := range out.Stages {
		m, err := b.deps.Record.Read(t.Context(), s.Ref)
		require.NoError(t, err)
		got = append(got, s.Stage)
		parts = append(parts, m.Parts...)
	}
	require.Equal(t, []string{"rollout", "sandbox", "rollout", "sandbox", "rollout", "assemble", "reward"}, got)
	require.ElementsMatch(t, b.refs, parts)
}

// A chain that does not reach turn 0 is damage and not an empty past.
func TestAChainWithoutItsBeginningIsDamaged(t *testing.T) {
	b := stepOf(t, nil, nil)
	turn := commitRows(b, schema.At("r", 1, schema.StageRollout).WithTurn(1).WithShard(0), []schema.TurnRow{})
	_, err := b.deps.Behind(t.Context(), api.Past{Last: turn}, nil)
	require.ErrorContains(t, err, "names no earlier turn of its shard")
}

// A shard of a large step reads only its own prompts.
func TestAShardReadsItsOwnPrompts(t *testing.T) {
	b := stepWith(t, nil, nil, "rollout.prompts=1100", "rollout.shard_groups=32", "resample.dynamic={tries: 2}",
		"steps=3")
	recipe, err := b.deps.Recipes.Recipe(t.Context(), b.scope)
	require.NoError(t, err)
	scope := b.scope
	scope.Step = 2
	const shards = 35
	for round := range 2 {
		out, err := do(b, data.NewSelectPrompts(b.deps).Execute, api.PromptsInput{Scope: scope, Round: &round})
		require.NoError(t, err)
		all := rowsAt[schema.PromptRow](b, out.Manifest)
		require.Len(t, all, 1100)
		c := &countingStore{Store: b.deps.Store}
		d, err := New(stage.Options{Store: c, Code: b.deps.Code})
		require.NoError(t, err)
		for _, shard := range []int{0, 15, 16, 34} {
			shard += round * shards
			want, err := prompts.OfShard(all, shard, recipe.Rollout)
			require.NoError(t, err)
			require.NotEmpty(t, want)
			before := c.gets.Load()
			rows, err := d.PromptsOf(t.Context(), out.Manifest, shard, recipe.Rollout)
			require.NoError(t, err)
			require.Equal(t, want, rows, "shard %d", shard)
			require.EqualValues(t, 2, c.gets.Load()-before, "the manifest and one file")
		}
	}
}
