package activities

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/activities/prepare"
	"github.com/ropewalk/ropewalk/activities/replay"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// A recipe that leaves open what a run needs is refused for good, with all that is missing, before anything is
// written.
func TestPlannedChoicesAreRefused(t *testing.T) {
	b := stepOf(t, nil, nil)
	before, err := b.deps.Store.List(t.Context(), "")
	require.NoError(t, err)
	refused := func(err error) {
		t.Helper()
		var failure *temporal.ApplicationError
		require.ErrorAs(t, err, &failure)
		require.Equal(t, api.FailBadInput, failure.Type())
		require.True(t, failure.NonRetryable())
		require.ErrorContains(t, err, "cannot run yet:\n")
	}
	_, err = do(b, prepare.PrepareRun{Worker: b.deps}.Execute, api.PrepareInput{Run: "new", Kind: "train",
		Recipe: "presets/grpo-tir-math"})
	refused(err)
	require.ErrorContains(t, err, "environment.settings.train: names no file of questions")

	_, err = do(b, prepare.PrepareRun{Worker: b.deps}.Execute, api.PrepareInput{Run: "new", Kind: "train",
		Recipe: "quickstart", Overrides: []string{"judge={url: http://127.0.0.1:1/v1, model: m}"}})
	require.ErrorContains(t, err, "judge: nothing asks it")

	_, err = do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, api.AmendInput{Run: "r", Config: b.scope.Config,
		From: 2, Set: []string{"reward={name: prs_long, judge: server}"}})
	refused(err)
	after, err := b.deps.Store.List(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, before, after)

	resolved, err := recipes.Resolve("quickstart", "", nil, nil, nil)
	require.NoError(t, err)
	judged, err := replay.Recipe("r", &resolved.Recipe, []string{"reward={name: prs_long, judge: server}"},
		[]string{schema.StageReward})
	require.NoError(t, err)
	require.ErrorContains(t, prepare.Built(judged), "judge: is required, for the reward prs_long asks a judge")
}

// incapable is a sampler that cannot draw at a temperature.
type incapable struct{ fakeEngine }

func (incapable) Capabilities() policy.Capabilities {
	can := fakeEngine{}.Capabilities()
	can.Temperature = false
	return can
}

// A recipe that needs more than the worker's sampler offers is refused for good before anything is written. A stage
// that got the recipe nevertheless, because another worker prepared the run, does not sample.
func TestTheSamplerMustBeCapable(t *testing.T) {
	b := stepOf(t, incapable{}, nil)
	before, err := b.deps.Store.List(t.Context(), "")
	require.NoError(t, err)
	refused := func(err error) {
		t.Helper()
		var failure *temporal.ApplicationError
		require.ErrorAs(t, err, &failure)
		require.Equal(t, api.FailBadInput, failure.Type())
		require.True(t, failure.NonRetryable())
		require.ErrorContains(t, err, "evaluation.greedy: the sampler cannot do what the recipe needs: a fake does "+
			"not offer temperature 0 (it is 0 there)")
	}
	_, err = do(b, prepare.PrepareRun{Worker: b.deps}.Execute, api.PrepareInput{Run: "new", Kind: "train",
		Recipe: "quickstart"})
	refused(err)
	_, err = do(b, episodes.GenerateRollouts{Worker: b.deps}.Execute,
		api.GenerateInput{Scope: b.scope, Prompts: b.prompts, Policy: b.policy})
	refused(err)
	after, err := b.deps.Store.List(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, before, after)
}
