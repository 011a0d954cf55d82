package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// killBeforePrepare starts a run where no worker takes it further and kills its command.
func (h *home) killBeforePrepare(t *testing.T, run string) {
	t.Helper()
	c := h.with("ROPEWALK_NO_WORKER=1").start(t, recipe(run)...)
	c.says(t, "run          "+run)
	c.signal(t, syscall.SIGKILL)
	c.wait(t)
	h.ended(t)
	require.False(t, h.record().has(schema.CatalogueKey(run)))
	require.Equal(t, "queued", h.statuses(t)[run])
}

// statuses lists the runs' statuses.
func (h *home) statuses(t *testing.T) map[string]string {
	t.Helper()
	var listed struct {
		Runs []struct{ Run, Status string }
	}
	require.NoError(t, json.Unmarshal([]byte(h.run(t, "runs", "--json").ok(t).out), &listed))
	out := map[string]string{}
	for _, r := range listed.Runs {
		out[r.Run] = r.Status
	}
	return out
}

func TestKilledBeforeItsRecipeARunIsShownAndGoesOnWhenAsked(t *testing.T) {
	h, want := needs(t, ownServers("they end with the command, so that no one knows the run"))
	const name = "never-begun"
	h.killBeforePrepare(t, name)
	shown := h.run(t, "show", name).ok(t)
	require.Contains(t, shown.out, "run never-begun is queued: it was requested at ")
	require.Contains(t, shown.out, "ropewalk resume never-begun starts it, ropewalk cancel never-begun drops it")

	paused := h.run(t, "pause", name)
	require.Equal(t, 2, paused.code, paused.err)
	require.Contains(t, paused.err, "pause: run never-begun is queued, so it takes no update")
	require.NotContains(t, paused.err, "starting", "nothing starts for it")

	resume := []string{"resume", "nosuch"}
	other := h.run(t, resume...) // its worker must not continue the run
	require.NotZero(t, other.code, other.err)
	require.Contains(t, other.err,
		"run never-begun was open, and its command was killed: it does not go on by itself. ropewalk resume "+
			"never-begun goes on")
	require.Empty(t, h.record().keys(schema.RunPrefix(name)), "nothing was prepared unasked")
	again := h.run(t, resume...)
	require.NotContains(t, again.err, name, "it is told once")

	changed := h.run(t, recipe(name, "--seed", "9")...)
	require.Equal(t, 2, changed.code, changed.err)
	require.Contains(t, changed.err, "run never-begun is already queued under another recipe, seed or file")

	r := h.run(t, "resume", name, "--json").ok(t)
	require.False(t, h.record().has(schema.RequestKey(name)))
	h.undisturbed(t, want, r.report(t))
}

func TestKilledBeforeItsRecipeARunIsCancelled(t *testing.T) {
	h, _ := needs(t, ownServers("they end with the command, so that no one knows the run"))
	const name = "never-wanted"
	h.killBeforePrepare(t, name)
	require.Contains(t, h.run(t, "cancel", name).ok(t).out, "it is dropped; it had committed nothing")
	require.NotContains(t, h.statuses(t), name)
	for _, command := range []string{"cancel", "resume", "show"} {
		r := h.run(t, command, name)
		require.Equal(t, 2, r.code, r.err)
	}
	require.Empty(t, h.record().keys(schema.RunPrefix(name)))
}

// Another start can join an open run by name only with the same recipe and seed.
func TestAnOpenRunIsJoinedUnderItsOwnRecipeAlone(t *testing.T) {
	h, want := needs(t, ownNamespace)
	first := h.with("ROPEWALK_NO_WORKER=1").start(t, recipe("joined")...)
	first.says(t, "run          joined")
	other := h.with("ROPEWALK_NO_WORKER=1").run(t, recipe("joined", "--seed", "9")...)
	require.Equal(t, 2, other.code, other.err)
	require.Contains(t, other.err, "run joined ")
	require.Contains(t, other.err, "another recipe or seed")
	require.Empty(t, other.out)
	second := h.run(t, recipe("joined")...).ok(t)
	require.Equal(t, first.wait(t).ok(t).report(t).Digest, second.report(t).Digest)
	h.undisturbed(t, want, second.report(t))
}

func TestAnImportUnderATakenName(t *testing.T) {
	h, _ := needs(t, sharedStack)
	one, two := filepath.Join(h.cwd, "taken-one.json"), filepath.Join(h.cwd, "taken-two.json")
	writeFile(t, one, talk)
	writeFile(t, two, strings.ReplaceAll(talk, "Never.", "Ever."))
	first := h.imported(t, one, "taken")
	other := h.run(t, "import", "openai", two, "--run-id", "taken", "--json")
	require.Equal(t, 2, other.code, other.err)
	require.Contains(t, other.err, "run taken holds the import of another file (SHA-256 ")
	require.Empty(t, other.out)
	again := h.run(t, "import", "openai", one, "--run-id", "taken", "--json").ok(t)
	require.Contains(t, again.err, "this file is already imported as run taken")
	var figures struct{ Trajectories int }
	require.NoError(t, json.Unmarshal([]byte(again.out), &figures))
	require.Equal(t, first.Trajectories, figures.Trajectories)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}
