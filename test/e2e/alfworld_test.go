package e2e

import (
	"archive/zip"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/internal/testing/realdata"
)

// A run over ALFWorld's own games ends in the same policy whether or not its worker is killed on the way, and says
// which world it trains.
func TestRunsOverALFWorldsGames(t *testing.T) {
	longform.Need(t, environmentsVariable, "test-environments")
	files, err := zip.OpenReader(realdata.Path(t, "alfworld", "games.zip"))
	require.NoError(t, err)
	defer files.Close()
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(folder, files))
	h, _ := needs(t, emptyNamespace)
	h.ensureUp(t)
	args := func(run string) []string {
		return []string{"run", "household", "--json", "--run-id", run, "--set", "steps=2",
			"--set", "environment.settings={games: " + folder + ", seen: true, essential: true}",
			"--set", "policy.layers=1", "--set", "policy.hidden=32", "--set", "policy.heads=1",
			"--set", "policy.max_positions=2048", "--set", "warm_start.steps=4", "--set", "warm_start.batch=8",
			"--set", "warm_start.optimizer.warmup_steps=0", "--set", "rollout.prompts=4",
			"--set", "rollout.samples_per_prompt=4", "--set", "rollout.shard_groups=2", "--set", "rollout.max_turns=6",
			"--set", "rollout.max_tokens=1536", "--set", "evaluation.problems=4", "--set", "evaluation.samples=1"}
	}
	const world = "alfworld is ALFWorld, "
	whole := h.run(t, args("games")...).ok(t)
	require.Contains(t, whole.err, "note: "+world)
	require.Contains(t, h.run(t, "show", "games").ok(t).out, "the environment "+world)
	h.run(t, "verify", "games").ok(t)

	run := h.start(t, args("games-killed")...)
	require.NoError(t, syscall.Kill(h.freezeInMidStep(t, "games-killed"), syscall.SIGKILL))
	require.Equal(t, whole.report(t).Digest, run.wait(t).ok(t).report(t).Digest)
	require.Equal(t, h.record().outline(t, "games"), h.record().outline(t, "games-killed"))
}
