package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/workflows"
)

// A run that was started in Temporal's UI starts no program of its user before the user has confirmed it. Runs that
// commands and schedules start need no one's word.
func TestProgramsOfRunsThatNoCommandHasStarted(t *testing.T) {
	h, _ := needs(t, ownNamespace)
	h = h.with("ROPEWALK_PYTHON=" + pythontest.Need(t, "PYTHON"))
	h.ensureUp(t)
	defer h.ensureDown(t)
	folder := t.TempDir()
	ran := filepath.Join(folder, "ran")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "mine.py"), []byte("open("+`"`+ran+`"`+", 'w').close()\n"+
		"def score(trajectory):\n    return 1.0, True\n"), 0o600))
	text, err := os.ReadFile(tiny())
	require.NoError(t, err)
	set := []string{"reward.name=python", "reward.module=mine:score", "reward.path=" + folder, "reward.kwargs='{}'",
		"steps=1"}
	c := h.dial(t)
	input := map[string]any{"recipe_yaml": string(text), "set": set}

	startFromUI(t, c, workflows.TrainRunName, "foreign", input)
	seen := h.run(t, "follow", "foreign")
	require.Equal(t, 3, seen.code, "%s", seen.err)
	require.Contains(t, seen.err, "parked at step 0 ("+api.FailUnconfirmed+")")
	require.Contains(t, seen.err, "reward: Python mine:score "+folder)
	require.Contains(t, seen.err, "  ropewalk unpark foreign --confirm\n")
	p := h.run(t, "unpark", "foreign", "--retry", "--json").parked(t)
	require.Equal(t, api.FailUnconfirmed, p.Parked.Kind, "trying again is no confirmation")
	require.NoFileExists(t, ran)
	done := h.run(t, "unpark", "foreign", "--confirm", "--json").ok(t)
	require.Contains(t, done.err, "confirmed  reward: Python mine:score "+folder)
	require.FileExists(t, ran)

	own, nightly := recipe("own"), []string{"schedule", "create", "nightly", tiny(), "--every", "1000h"}
	for _, s := range set {
		own, nightly = append(own, "--set", s), append(nightly, "--set", s)
	}
	h.run(t, own...).ok(t)
	startFromUI(t, c, workflows.TrainRunName, "again", input)
	require.Equal(t, 3, h.run(t, "follow", "again").code, "the same recipe in another run")
	h.run(t, nightly...).ok(t)
	h.run(t, "schedule", "trigger", "nightly").ok(t)
	eventually(t, func() bool { return len(h.runsNamed("nightly-")) > 0 }, "the scheduled run to be prepared")
}
