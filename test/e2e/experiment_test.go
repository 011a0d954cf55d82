package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/workflows"
)

const experimentFile = `name: tiny
question: does a higher rate help in two steps?
recipe: tiny.yaml
set: {steps: 2, evaluation.every: 1}
arms:
  low: {set: {optimizer.lr: 0.0005}}
  high:
seeds: 2
outcomes: [success, auc, train_success, valid, failed_calls]
budget: {axis: tokens}
`

// reported is what `experiment show --json` prints, as far as the tests read it.
type reported struct {
	Trials []struct {
		Run      string `json:"run_id"`
		Arm      string
		State    string
		Steps    int
		Outcomes map[string]float64
		Cost     struct{ Tokens, Calls, Updates, Bytes int64 }
	}
	Contrasts []struct {
		Arm, Outcome string
		N            int
	}
}

func (h *home) shown(t *testing.T, file string) (out reported) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(h.run(t, "experiment", "show", file, "--json").ok(t).out), &out))
	return out
}

// An experiment whose command is killed goes on where it was; what is done is not trained again, and its results can be
// read from small files elsewhere.
func TestAnExperimentIsKilledAndGoesOn(t *testing.T) {
	longform.Need(t, experimentsVariable, "test-experiments")
	h, _ := needs(t, ownServers("they end with the command that is killed"))
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(h.cwd, name), []byte(text), 0o600))
	}
	recipe, err := os.ReadFile(tiny())
	require.NoError(t, err)
	write("tiny.yaml", string(recipe))
	write("tiny-experiment.yaml", experimentFile)
	run := []string{"experiment", "run", "tiny-experiment.yaml"}

	plan := h.run(t, append(run, "--dry-run")...).ok(t).out
	require.Contains(t, plan, "4 of 4 trials are left, 1 at once")
	require.Equal(t, 2, strings.Count(plan, "of trial-tiny-s"), "each seed has one warm start")

	first := h.start(t, run...)
	first.says(t, "done      trial-tiny-s1-")
	first.signal(t, syscall.SIGKILL)
	first.wait(t)
	h.ended(t)
	again := h.run(t, run...).ok(t)
	require.Contains(t, again.out, "high − low")
	shown := h.shown(t, "tiny-experiment.yaml")
	require.Len(t, shown.Trials, 4)
	for _, trial := range shown.Trials {
		require.Equal(t, "done", trial.State, trial.Run)
		require.Equal(t, 2, trial.Steps)
		require.Len(t, trial.Outcomes, 5, trial.Run)
		require.Positive(t, trial.Cost.Tokens)
		require.Positive(t, trial.Cost.Calls)
		require.EqualValues(t, 2, trial.Cost.Updates)
	}
	require.Len(t, shown.Contrasts, 5)
	require.Equal(t, 2, shown.Contrasts[0].N)

	h.run(t, "experiment", "report", "tiny-experiment.yaml", "-o", "page.html").ok(t)
	page, err := os.ReadFile(filepath.Join(h.cwd, "page.html"))
	require.NoError(t, err)
	for _, part := range []string{"4 of 4", "high − low", "optimizer.lr", "0.0005", "<svg"} {
		require.Contains(t, string(page), part)
	}
	require.NotContains(t, string(page), "refresh", "all trials are done")

	h.run(t, "experiment", "export", "tiny-experiment.yaml", "-o", "tracked").ok(t)
	events, err := filepath.Glob(filepath.Join(h.cwd, "tracked", "*", "seed-*", "events.*"))
	require.NoError(t, err)
	require.Len(t, events, 4)

	// Without the runs, the files are enough, and nothing starts.
	h.run(t, "experiment", "delete", "tiny-experiment.yaml").ok(t)
	require.Empty(t, h.runsNamed("trial-"))
	require.Equal(t, shown, h.shown(t, "tiny-experiment.yaml"))
	last := h.run(t, run...).ok(t)
	require.NotContains(t, last.err, "experiment-tiny")
}

// From the UI, an experiment of built-in recipes starts by its text alone. Its stop rule ends the worse arm after the
// first step.
func TestAnExperimentFromTheUIStopsAnArm(t *testing.T) {
	h, _ := needs(t, ownNamespace)
	h.ensureUp(t)
	c := h.dial(t)
	recipe, err := os.ReadFile(tiny())
	require.NoError(t, err)
	file := strings.Replace(experimentFile, "seeds: 2", "seeds: 1", 1) + "stop: {at: [1], halve: {by: train_success}}\n"
	started := startFromUI(t, c, workflows.ExperimentName, "experiment-ui", map[string]any{"name": "experiment-ui",
		"experiment_yaml": file, "recipes": map[string]string{"tiny.yaml": string(recipe)}})
	var out workflows.ExperimentState
	require.NoError(t, started.Get(t.Context(), &out))
	states := map[string]workflows.TrialState{}
	for _, trial := range out.Trials {
		states[trial.State] = trial
	}
	require.Len(t, states, 2)
	stopped, done := states[workflows.TrialStopped], states[workflows.TrialDone]
	require.Equal(t, 1, stopped.Step)
	require.Contains(t, stopped.Reason, "rank 2 of 2")
	all := h.statuses(t)
	require.Equal(t, "interrupted", all[stopped.Run])
	require.Equal(t, "done", all[done.Run])
	require.Equal(t, 1, h.record().heads(stopped.Run))
	require.Contains(t, h.run(t, "audit", done.Run).ok(t).out, "experiment tiny")
	if *update {
		save(t, h, "experiment-ui", "", "experiment.json")
		save(t, h, stopped.Run, "", "train-held.json")
	}
}

// A trial whose recipe runs the user's own code parks if it is started from the UI, and the command then says what
// waits. What the command starts is confirmed.
func TestATrialParks(t *testing.T) {
	longform.Need(t, experimentsVariable, "test-experiments")
	h, _ := needs(t, ownNamespace)
	h.ensureUp(t)
	defer h.ensureDown(t)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "mine.py"),
		[]byte("def score(trajectory):\n    return 1.0, True\n"), 0o600))
	recipe, err := os.ReadFile(tiny())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(h.cwd, "tiny.yaml"), recipe, 0o600))
	file := func(seed string) string {
		text := "name: own\nrecipe: tiny.yaml\nseeds: [" + seed + "]\nset:\n  steps: 1\n  warm_start.steps: 20\n" +
			"  reward: {name: python, module: 'mine:score', path: '" + folder + "', kwargs: '{}'}\n"
		require.NoError(t, os.WriteFile(filepath.Join(h.cwd, "own.yaml"), []byte(text), 0o600))
		return text
	}
	run := []string{"experiment", "run", "own.yaml"}
	file("2")
	h.run(t, run...).ok(t)
	startFromUI(t, h.dial(t), workflows.ExperimentName, "experiment-own", map[string]any{"name": "experiment-own",
		"experiment_yaml": file("1"), "recipes": map[string]string{"tiny.yaml": string(recipe)}})
	parked := h.run(t, run...)
	require.Equal(t, 3, parked.code, parked.err)
	require.Contains(t, parked.err, "is already open; this command follows it")
	says := regexp.MustCompile("parked +(trial-\\S+) waits for a decision: .* `ropewalk unpark (\\S+)` goes on").
		FindStringSubmatch(parked.err)
	require.NotNil(t, says, parked.err)
	trial := says[1]
	file("3")
	other := h.run(t, run...)
	require.Equal(t, 2, other.code, other.err)
	require.Contains(t, other.err, "experiment-own is open with other trials")
	file("1")
	h.run(t, "unpark", trial, "--confirm").ok(t)
	h.run(t, run...).ok(t)
	require.Equal(t, "done", h.shown(t, "own.yaml").Trials[0].State)
}
