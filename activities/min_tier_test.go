package activities

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/activities/prepare"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/sandbox"
)

// A machine whose isolation is weaker than the recipe accepts runs nothing of the recipe and writes nothing.
func TestWeakIsolationIsRefused(t *testing.T) {
	b := stepOf(t, nil, nil)
	refused := func(err error, want string) {
		t.Helper()
		var failure *temporal.ApplicationError
		require.ErrorAs(t, err, &failure)
		require.Equal(t, api.FailBadInput, failure.Type())
		require.ErrorContains(t, err, "sandbox.min_tier: the recipe wants tier "+want)
		require.ErrorContains(t, err, "ropewalk sandbox doctor")
	}
	before, err := b.deps.Store.List(t.Context(), "")
	require.NoError(t, err)
	b.deps.Execution.Tier = sandbox.TierRlimits
	prepare := func(set ...string) error {
		_, err := do(b, prepare.PrepareRun{Worker: b.deps}.Execute, api.PrepareInput{Run: "new", Kind: "train",
			Recipe: "quickstart", Overrides: set})
		return err
	}
	refused(prepare(), "landlock, and the worker's machine grants rlimits")
	refused(prepare("sandbox={}"), "full, and the worker's machine grants rlimits")
	_, err = do(b, episodes.ExecuteToolCalls{Worker: b.deps}.Execute, api.ToolsInput{Scope: b.scope})
	refused(err, "landlock")
	after, err := b.deps.Store.List(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, before, after)

	for _, tier := range []sandbox.Tier{sandbox.TierFull, sandbox.TierLandlock} {
		b.deps.Execution.Tier = tier
		resolved, err := recipes.Resolve("quickstart", "", nil, nil, nil)
		require.NoError(t, err)
		require.NoError(t, b.deps.Execution.Isolates(&resolved.Recipe))
	}
}

// Not even the episodes of an interleaved shard that work ahead run a call in a sandbox that is too weak.
func TestNoCallRunsInAWeakSandbox(t *testing.T) {
	b := flowsOf(t, 2)
	b.deps.Execution.Tier = sandbox.TierRlimits
	_, err := b.run()
	require.ErrorContains(t, err, "sandbox.min_tier: the recipe wants tier landlock")
	require.Empty(t, b.sandbox.ran)
}
