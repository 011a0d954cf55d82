package activities

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/prepare"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/activities/upkeep"
	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

func TestAmendmentsFollowOneAnother(t *testing.T) {
	b := stepOf(t, nil, nil)
	first, err := do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, api.AmendInput{Run: "r", Config: b.scope.Config,
		From: 3, Set: []string{"rollout.temperature=0.5", "steps=7"}})
	require.NoError(t, err)
	require.Equal(t, api.Amendment{Manifest: first.Manifest, Plan: first.Amendment.Plan, From: 3}, first.Amendment)
	require.Equal(t, 7, first.Amendment.Plan.Steps)
	second, err := do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, api.AmendInput{Run: "r", Config: first.Manifest,
		Number: 1, From: 4, Set: []string{"steps=8"}})
	require.NoError(t, err)

	all, next, err := prepare.Amendments(t.Context(), &b.deps.Recipes, "r")
	require.NoError(t, err)
	require.Equal(t, []api.Amendment{first.Amendment, second.Amendment}, all)
	require.Equal(t, 2, next)
	recipe, err := b.deps.Recipes.Recipe(t.Context(), api.Scope{Run: "r", Step: 4, Config: second.Manifest})
	require.NoError(t, err)
	require.Equal(t, 0.5, recipe.Rollout.Temperature, "the second amends the first")
	require.Equal(t, 8, recipe.Steps)
	m, err := b.deps.Record.Read(t.Context(), second.Manifest)
	require.NoError(t, err)
	require.Equal(t, []schema.Ref{first.Manifest}, m.Inputs)
}

func TestAnAmendmentIsMadeOnce(t *testing.T) {
	b := stepOf(t, nil, nil)
	in := api.AmendInput{Run: "r", Config: b.scope.Config, From: 2, Set: []string{"steps=7"}}
	first, err := do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	again, err := do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	require.Equal(t, first.Amendment, again.Amendment)
	in.Set = []string{"steps=9"}
	other, err := do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	require.True(t, other.Taken)
	require.Zero(t, other.Amendment)
}

func TestABadAmendmentLeavesTheRunAsItIs(t *testing.T) {
	b := stepOf(t, nil, nil)
	_, err := do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, api.AmendInput{Run: "r", Config: b.scope.Config,
		From: 2, Set: []string{"rollout.temperature=-1"}})
	require.ErrorContains(t, err, "rollout.temperature=-1: must be > 0")
	all, next, err := prepare.Amendments(t.Context(), &b.deps.Recipes, "r")
	require.NoError(t, err)
	require.Empty(t, all)
	require.Zero(t, next)
}

// A step that runs again must not adopt what a replay of it has made.
func TestAStepTakenAnewHasAGenerationOfItsOwn(t *testing.T) {
	b := stepOf(t, nil, nil)
	replayed := schema.NewManifest(schema.At("r", 1, schema.StageReward).WithGen(2), b.deps.Code, b.configDigest(t))
	replayed.Inputs = []schema.Ref{b.scope.Config}
	_, _, _, err := b.deps.Record.Commit(t.Context(), replayed)
	require.NoError(t, err)
	in := api.AmendInput{Run: "r", Config: b.scope.Config, From: 1, Rerun: true,
		Set: []string{"rollout.shard_groups=1"}}
	out, err := do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	require.Equal(t, 3, out.Amendment.Gen)

	// A retried attempt finds its own generation, whatever was made since.
	replayed.Gen = 5
	_, _, _, err = b.deps.Record.Commit(t.Context(), replayed)
	require.NoError(t, err)
	again, err := do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	require.Equal(t, 3, again.Amendment.Gen)
}

// configDigest is the digest of the step's recipe.
func (b *stepBench) configDigest(t *testing.T) string {
	t.Helper()
	c, err := b.deps.Recipes.Config(t.Context(), b.scope.Config)
	require.NoError(t, err)
	return c.Digest
}

// amendThrough asks for an amendment of the step's recipe through a store with faults.
func (b *stepBench) amendThrough(in api.AmendInput, rules ...faults.Rule) (api.Amended, error) {
	b.t.Helper()
	deps, err := New(stage.Options{Store: faults.New(b.deps.Store, rules...), Tier: sandbox.TierFull, Code: b.deps.Code,
		Scratch: b.t.TempDir()})
	require.NoError(b.t, err)
	return do(b, prepare.AmendRecipe{Worker: deps}.Execute, in)
}

// amendKey is a part of the key of amendment 0.
const amendKey = "/amend/try=0"

// An attempt that fails after its commit landed has changed the run; settling detects that.
func TestSettlingFindsAnAmendmentThatLanded(t *testing.T) {
	b := stepOf(t, nil, nil)
	in := api.AmendInput{Run: "r", Config: b.scope.Config, From: 2, Set: []string{"steps=7"}}
	_, err := b.amendThrough(in, faults.Rule{Op: faults.PutIfAbsent, Key: amendKey, Effect: faults.LostAck})
	require.ErrorContains(t, err, "injected fault")
	_, err = b.amendThrough(in, faults.Rule{Op: faults.Get, Key: amendKey})
	require.ErrorContains(t, err, "injected fault")

	in.Settle = true
	out, err := do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	require.False(t, out.Void || out.Taken)
	require.Equal(t, 7, out.Amendment.Plan.Steps)
	all, next, err := prepare.Amendments(t.Context(), &b.deps.Recipes, "r")
	require.NoError(t, err)
	require.Equal(t, []api.Amendment{out.Amendment}, all)
	require.Equal(t, 1, next)
}

// A number that was settled as void stays void, whatever attempts still run, and a resumed run applies nothing of it.
func TestASettledNumberIsVoidForGood(t *testing.T) {
	b := stepOf(t, nil, nil)
	failed := api.AmendInput{Run: "r", Config: b.scope.Config, From: 2, Set: []string{"steps=7"}}
	_, err := b.amendThrough(failed, faults.Rule{Op: faults.PutIfAbsent, Key: amendKey})
	require.ErrorContains(t, err, "injected fault")
	settle := failed
	settle.Settle = true
	for range 2 { // the settling attempts may fail and be retried
		out, err := do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, settle)
		require.NoError(t, err)
		require.True(t, out.Void)
	}
	late, err := do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, failed)
	require.NoError(t, err)
	require.True(t, late.Taken)
	all, next, err := prepare.Amendments(t.Context(), &b.deps.Recipes, "r")
	require.NoError(t, err)
	require.Empty(t, all)
	require.Equal(t, 1, next)

	other := api.AmendInput{Run: "r", Config: b.scope.Config, Number: next, From: 2, Set: []string{"steps=9"}}
	out, err := do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, other)
	require.NoError(t, err)
	all, _, err = prepare.Amendments(t.Context(), &b.deps.Recipes, "r")
	require.NoError(t, err)
	require.Equal(t, []api.Amendment{out.Amendment}, all)
}

// An older run may hold an amendment that it reported as failed. A later amendment of the same recipe ignores it.
func TestAnAmendmentThatNoLaterOneWasMadeFromIsNotInForce(t *testing.T) {
	b := stepOf(t, nil, nil)
	amend := func(in api.AmendInput) api.Amendment {
		in.Run = "r"
		out, err := do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, in)
		require.NoError(t, err)
		return out.Amendment
	}
	first := amend(api.AmendInput{Config: b.scope.Config, From: 2, Set: []string{"steps=7"}})
	amend(api.AmendInput{Config: first.Manifest, Number: 1, From: 3, Set: []string{"steps=70"}})
	second := amend(api.AmendInput{Config: first.Manifest, Number: 2, From: 3, Set: []string{"steps=9"}})
	third := amend(api.AmendInput{Config: second.Manifest, Number: 3, From: 4, Set: []string{"steps=10"}})
	all, next, err := prepare.Amendments(t.Context(), &b.deps.Recipes, "r")
	require.NoError(t, err)
	require.Equal(t, []api.Amendment{first, second, third}, all)
	require.Equal(t, 4, next)
}

// If the store refuses a worker, the worker knows nothing about what an earlier attempt has committed, so its failure
// does not count as a refusal of the change.
func TestAStoreThatRefusesIsNoRefusalOfAnAmendment(t *testing.T) {
	b := stepOf(t, nil, nil)
	in := api.AmendInput{Run: "r", Config: b.scope.Config, From: 2, Set: []string{"steps=7"}}
	for _, key := range []string{amendKey, "table=documents", "/prepare/"} {
		_, err := b.amendThrough(in, faults.Rule{Key: key, Err: store.ErrCredentials})
		var failure *temporal.ApplicationError
		require.ErrorAs(t, err, &failure, key)
		require.False(t, failure.NonRetryable(), key)
		require.NotEqual(t, api.FailBadInput, failure.Type(), key)
	}
}

// deeds reads what the audit log says about run r.
func (b *stepBench) deeds() []schema.Deed {
	b.t.Helper()
	deeds, err := analysis.New(b.deps.Store).Deeds(b.t.Context(), "r")
	require.NoError(b.t, err)
	return deeds
}

// Who asked for an amendment is noted next to it, once, and changes none of its bytes. Without an actor nothing is
// noted, as for the inputs of earlier versions.
func TestTheRecordNamesWhoAskedForAnAmendment(t *testing.T) {
	b := stepOf(t, nil, nil)
	in := api.AmendInput{Run: "r", Config: b.scope.Config, From: 2, Set: []string{"steps=7"}}
	want, err := do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	require.Empty(t, b.deeds())

	b = stepOf(t, nil, nil)
	in.Actor, in.At = "ada", time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC).UnixMicro()
	_, err = b.amendThrough(in, faults.Rule{Op: faults.PutIfAbsent, Key: schema.DeedsPrefix})
	require.ErrorContains(t, err, "note who asks for amend of run r: ")
	for range 2 { // the second attempt's predecessor has lost its answer
		out, err := do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, in)
		require.NoError(t, err)
		require.Equal(t, want.Manifest, out.Manifest, "the manifest does not depend on who asks")
		require.Equal(t, want.Amendment, out.Amendment)
	}
	require.Equal(t, []schema.Deed{{Action: schema.DeedAmend, Actor: "ada", Host: stage.Hostname(),
		At: "2026-01-02T03:04:05.000006Z", Detail: `{"amendment":0,"from_step":2,"set":["steps=7"]}`,
		Manifest: want.Manifest.Key}}, b.deeds())
	all, err := analysis.New(b.deps.Store).Amendments(t.Context(), "r")
	require.NoError(t, err)
	require.Equal(t, []analysis.Amendment{{From: 2, Set: []string{"steps=7"}, Actor: "ada"}}, all)

	in.Set, in.Actor = []string{"steps=9"}, "grace" // the number is taken: nothing was committed for her
	out, err := do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	require.True(t, out.Taken)
	require.Len(t, b.deeds(), 1)
}

// An attempt that died between the commit and the note leaves the note to the settling one.
func TestSettlingNotesWhoAsked(t *testing.T) {
	b := stepOf(t, nil, nil)
	in := api.AmendInput{Run: "r", Config: b.scope.Config, From: 2, Set: []string{"steps=7"}, Actor: "ada", At: 1}
	_, err := b.amendThrough(in, faults.Rule{Op: faults.PutIfAbsent, Key: schema.DeedsPrefix})
	require.Error(t, err)
	in.Settle = true
	out, err := do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	require.False(t, out.Void || out.Taken)
	require.Len(t, b.deeds(), 1)
}

// noDeeds is a store whose credentials may add no notes about deeds.
type noDeeds struct{ store.Store }

func (s noDeeds) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	if strings.HasPrefix(key, schema.DeedsPrefix) {
		return fmt.Errorf("%w: put %s", store.ErrCredentials, key)
	}
	return s.Store.PutIfAbsent(ctx, key, data)
}

// A worker that may note nothing still amends, because the command has noted the request, but it starts no scheduled
// run.
func TestAWorkerThatMayNoteNothing(t *testing.T) {
	b := stepOf(t, nil, nil)
	b.deps.Store = noDeeds{b.deps.Store}
	out, err := do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, api.AmendInput{Run: "r", Config: b.scope.Config,
		From: 2, Set: []string{"steps=7"}, Actor: "ada", At: 1})
	require.NoError(t, err)
	require.Equal(t, 7, out.Amendment.Plan.Steps)
	_, err = upkeep.NoteDeed{Worker: b.deps}.Execute(t.Context(), &stage.Env{},
		api.DeedInput{Run: "r", Action: "start", Actor: "schedule nightly"})
	var refused *temporal.ApplicationError
	require.ErrorAs(t, err, &refused)
	require.True(t, refused.NonRetryable())
	require.ErrorContains(t, err, "note who asks for start of run r: ")
}

func TestADeedIsNotedOnce(t *testing.T) {
	b := stepOf(t, nil, nil)
	in := api.DeedInput{Run: "r", Action: "start", Actor: "schedule nightly",
		With: map[string]string{"recipe": "q"}, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMicro()}
	for range 2 { // another attempt, whose predecessor's answer was lost
		_, err := upkeep.NoteDeed{Worker: b.deps}.Execute(t.Context(), &stage.Env{}, in)
		require.NoError(t, err)
	}
	require.Equal(t, []schema.Deed{{Action: "start", Actor: "schedule nightly", Detail: `{"recipe":"q"}`,
		Host: stage.Hostname(), At: "2026-01-02T03:04:05.000000Z"}}, b.deeds())
}
