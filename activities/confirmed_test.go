package activities

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/prepare"
	"github.com/ropewalk/ropewalk/activities/upkeep"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// scoringIn returns settings that name a program, a reward function in Python, and the folder that holds it.
func scoringIn(t *testing.T) (settings []string, folder string) {
	t.Helper()
	folder = t.TempDir()
	code := []byte("def score(trajectory):\n    return 1\n")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "mine.py"), code, 0o600))
	settings = []string{"reward.name=python", "reward.module=mine:score", "reward.path=" + folder, "reward.kwargs='{}'"}
	return settings, folder
}

// A worker of a local stack starts the programs of a recipe only if a command has asked for its run. Nothing is
// committed before.
func TestProgramsWaitForTheirUser(t *testing.T) {
	b := stepOf(t, fakeEngine{}, nil)
	scoring, folder := scoringIn(t)
	b.deps.Execution.Confirms = true
	prepared := func(run string, set ...string) error {
		_, err := do(b, prepare.PrepareRun{Worker: b.deps}.Execute,
			api.PrepareInput{Run: run, Kind: "train", Recipe: "quickstart", Overrides: set})
		return err
	}
	resolved, err := recipes.Resolve("quickstart", "", scoring, nil, nil)
	require.NoError(t, err)
	waits := func(run string) {
		t.Helper()
		err := prepared(run, scoring...)
		var app *temporal.ApplicationError
		require.ErrorAs(t, err, &app)
		require.Equal(t, api.FailUnconfirmed, app.Type())
		require.True(t, app.NonRetryable())
		require.ErrorContains(t, err, "reward: Python mine:score "+folder+"; `ropewalk unpark "+run+" --confirm`")
		_, _, found, err := b.deps.Record.Lookup(t.Context(), schema.AtInit(run, schema.StagePrepare))
		require.NoError(t, err)
		require.False(t, found)
	}
	request := func(run, digest string) {
		text, err := json.Marshal(schema.Request{Digest: digest, Input: json.RawMessage(`{}`)})
		require.NoError(t, err)
		require.NoError(t, b.deps.Store.Put(t.Context(), schema.RequestKey(run), text))
	}
	confirm := func(run, digest string) {
		deed := schema.NewDeed(schema.DeedConfirm, strconv.Quote(digest), "me", "here", time.Now())
		require.NoError(t, b.deps.NoteDeed(t.Context(), run, deed, digest[:4]))
	}
	require.NoError(t, prepared("plain"), "a recipe without programs needs no one's word")
	waits("ui")
	request("ui", "another recipe's")
	confirm("ui", "another recipe's")
	confirm("other", resolved.Digest)
	waits("ui")
	confirm("ui", resolved.Digest)
	require.NoError(t, prepared("ui", scoring...))
	waits("ui2")
	request("ui2", resolved.Digest)
	require.NoError(t, prepared("ui2", scoring...))
	require.NoError(t, prepared("ui2", scoring...), "the run is prepared, and its request is gone")
	_, err = do(b, prepare.PrepareRun{Worker: b.deps}.Execute, api.PrepareInput{Run: "ui2", Kind: "train",
		Resume: true})
	require.NoError(t, err)
	waits("nightly-1")
	confirm(schema.NoRun, resolved.Digest) // as for a schedule
	require.NoError(t, prepared("nightly-1", scoring...))
}

// Nothing that a workflow does confirms a run, and no amendment changes its programs.
func TestProgramsAreConfirmedByCommandsAlone(t *testing.T) {
	b := stepOf(t, nil, nil)
	scoring, folder := scoringIn(t)
	b.deps.Execution.Confirms = true
	_, err := do(b, upkeep.NoteDeed{Worker: b.deps}.Execute, api.DeedInput{Run: "ui", Action: schema.DeedConfirm})
	require.ErrorContains(t, err, "only commands confirm runs")
	_, err = do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, api.AmendInput{Run: "r", Config: b.scope.Config,
		From: 3, Set: scoring})
	require.ErrorContains(t, err,
		"the programs and secrets of a run cannot be changed (reward: Python mine:score "+folder+")")
	_, err = do(b, upkeep.NoteDeed{Worker: b.deps}.Execute, api.DeedInput{Run: "r", Action: schema.DeedRetry})
	require.ErrorContains(t, err, "only commands retry runs")
	text, err := json.Marshal(map[string]any{"set": scoring})
	require.NoError(t, err)
	deed := schema.NewDeed(schema.DeedRetry, string(text), "me", "here", time.Now())
	require.NoError(t, b.deps.NoteDeed(t.Context(), "other", deed, "x"))
	_, err = do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, api.AmendInput{Run: "r", Config: b.scope.Config,
		From: 3, Set: scoring})
	require.ErrorContains(t, err, "cannot be changed")
	require.NoError(t, b.deps.NoteDeed(t.Context(), "r", deed, "x"))
	_, err = do(b, prepare.AmendRecipe{Worker: b.deps}.Execute, api.AmendInput{Run: "r", Config: b.scope.Config,
		From: 3, Set: scoring})
	require.NoError(t, err, "a command has asked for it")
}
