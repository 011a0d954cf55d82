package activities

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// publishAfter commits the policy after a step and the step's head.
func (b *stepBench) publishAfter(step int, digest string) api.PolicyRef {
	b.t.Helper()
	place := schema.At(b.scope.Run, step, schema.StageUpdate)
	m := schema.NewManifest(place, b.deps.Code, strings.Repeat("d", 64))
	m.Inputs = []schema.Ref{b.scope.Config}
	m.Checkpoint = &schema.Checkpoint{Prefix: place.CheckpointPrefix("v"), Digest: digest,
		Files: []schema.CheckpointFile{{Name: "config.json", Digest: schema.Digest([]byte("{}")), Bytes: 2}}}
	require.NoError(b.t, b.deps.Store.Put(b.t.Context(), m.Checkpoint.Key(m.Checkpoint.Files[0]), []byte("{}")))
	_, ref, _, err := b.deps.Record.Commit(b.t.Context(), m)
	require.NoError(b.t, err)
	scope := b.scope
	scope.Step = step
	require.NoError(b.t, b.deps.CommitHead(b.t.Context(), scope, []api.StageRef{{Stage: schema.StageUpdate, Ref: ref}}))
	return api.PolicyRef{Manifest: ref, Digest: digest, Step: step}
}

// A shard learns of each policy that is published while it runs, up to the one that its step updates.
func TestSamplersOfAStep(t *testing.T) {
	b := stepOf(t, fakeEngine{}, &printer{nth: -1})
	recipe := &recipes.Recipe{Pipeline: &recipes.Pipeline{MaxStaleness: 2, InFlight: true}}
	scope, began, digest := b.scope, b.policy, func(c string) string { return strings.Repeat(c, 64) }
	scope.Step = 4
	one := b.publishAfter(1, digest("1"))
	b.deps.LookEvery = time.Nanosecond
	s, err := episodes.NewSamplers(t.Context(), b.deps, scope, recipe, one)
	require.NoError(t, err)
	require.Equal(t, one, s.Now(t.Context()))
	two := b.publishAfter(2, digest("2"))
	require.Equal(t, two, s.Now(t.Context()))
	require.Equal(t, two, s.Newest())
	three := b.publishAfter(3, digest("3"))
	b.publishAfter(4, digest("4"))
	require.Equal(t, three, s.Now(t.Context()))
	require.Equal(t, three, s.Now(t.Context()), "the policy that the step makes does not write its turns")
	for _, want := range []api.PolicyRef{one, two, three} {
		got, ok := s.Of(want.Digest)
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	_, ok := s.Of(digest("4"))
	require.False(t, ok)

	b.deps.LookEvery = time.Hour
	scope.Step = 6
	four := api.PolicyRef{Digest: digest("4"), Step: 4}
	s, err = episodes.NewSamplers(t.Context(), b.deps, scope,
		&recipes.Recipe{Pipeline: &recipes.Pipeline{MaxStaleness: 1, InFlight: true}}, four)
	require.NoError(t, err)
	b.publishAfter(5, digest("5"))
	require.Equal(t, four, s.Now(t.Context()), "it has just looked")

	scope.Step = 2 // before as many updates as may lie between
	s, err = episodes.NewSamplers(t.Context(), b.deps, scope, recipe, began)
	require.NoError(t, err)
	require.Equal(t, one, s.Newest())

	recipe.Pipeline.InFlight = false
	s, err = episodes.NewSamplers(t.Context(), b.deps, scope, recipe, began)
	require.NoError(t, err)
	require.Equal(t, began, s.Now(t.Context()))
}

// While the record cannot be read, turns are written by the newest policy that is known.
func TestSamplersWithoutTheRecord(t *testing.T) {
	b := stepOf(t, fakeEngine{}, &printer{nth: -1})
	recipe := &recipes.Recipe{Pipeline: &recipes.Pipeline{MaxStaleness: 1, InFlight: true}}
	scope := b.scope
	scope.Step = 2
	broken := faults.New(b.deps.Store, faults.Rule{Op: faults.Get, Key: schema.HeadKey(scope.Run, "1")})
	deps := &stage.Worker{Records: record.Records{Store: broken, Record: commit.New(broken)}}
	_, err := episodes.NewSamplers(t.Context(), deps, scope, recipe, b.policy)
	require.ErrorIs(t, err, faults.ErrInjected)
	b.deps.LookEvery = time.Nanosecond
	s, err := episodes.NewSamplers(t.Context(), b.deps, scope, recipe, b.policy)
	require.NoError(t, err)
	s.Records = deps.Records
	one := b.publishAfter(1, strings.Repeat("1", 64))
	require.Equal(t, b.policy, s.Now(t.Context()))
	s.Records = b.deps.Records
	require.Equal(t, one, s.Now(t.Context()))
}
