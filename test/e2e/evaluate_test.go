package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/internal/testing/openaitest"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
)

// rowsOf counts the rows of a run in a table, or in a table with a condition.
func (h *home) rowsOf(t *testing.T, run, from string) int {
	t.Helper()
	return h.count(t, run, "select count(*) from "+from)
}

// intact requires that `verify` accepts a run and that its pure stages can be made again.
func (h *home) intact(t *testing.T, run string) {
	t.Helper()
	h.run(t, "verify", run).ok(t)
	h.run(t, "replay", "--check", run).ok(t)
}

// An evaluation measures a policy of a run with other settings, and keeps a record of its own. The same command prints
// what is recorded.
func TestEvaluateARun(t *testing.T) {
	h, _ := needs(t, sharedStack)
	args := []string{"evaluate", "base@0", "--run-id", "base-measured", "--problems", "12", "--samples", "4",
		"--set", "rollout.max_turns=1"}
	first := h.run(t, args...).ok(t)
	require.Contains(t, first.out, "pass@4")
	require.Contains(t, first.out, "pass^4")
	again := h.run(t, args...).ok(t)
	require.Contains(t, again.err, "has measured this already")
	require.Equal(t, first.out, again.out)
	require.Equal(t, 48, h.rowsOf(t, "base-measured", "evaluations where not greedy"))
	require.Equal(t, 3, h.rowsOf(t, "base-measured", "(select distinct level from evaluations)"))
	require.Positive(t, h.rowsOf(t, "base-measured", "evaluation_turns where turn = 0"))
	require.Zero(t, h.rowsOf(t, "base-measured", "evaluation_turns where turn > 0"))
	h.run(t, "verify", "base-measured").ok(t)
	require.Contains(t, h.run(t, "show", "base-measured", "--evaluation").ok(t).out, "episodes")

	bad := h.run(t, "evaluate", "base@99")
	require.NotZero(t, bad.code)
	require.Contains(t, bad.err, "99")
}

// The agents of a debate, their rounds and the decision are recorded.
func TestEvaluateByDebate(t *testing.T) {
	h, _ := needs(t, sharedStack)
	h.run(t, "evaluate", "base", "--run-id", "base-debated", "--problems", "6", "--samples", "1", "--debate", "3",
		"--rounds", "1", "--set", "rollout.max_tokens=192").ok(t)
	require.Positive(t, h.rowsOf(t, "base-debated", "evaluation_debates"))
	h.run(t, "verify", "base-debated").ok(t)
}

// A user's function scores trajectories. What it said is in the record, so that a replay needs no Python.
func TestAFunctionScoresARun(t *testing.T) {
	h, _ := needs(t, emptyNamespace)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "mine.py"), []byte(
		"def score(trajectory, scale):\n    return scale * trajectory['turns'], trajectory['turns'] > 1\n"),
		0o600))
	h = h.with("ROPEWALK_PYTHON=" + pythontest.Need(t, "PYTHON"))
	h.train(t, "scored", "--set", fmt.Sprintf(`reward={name: python, module: "mine:score", path: %s, kwargs: '%s'}`,
		folder, `{"scale": 0.25}`), "--set", "warm_start.steps=40", "--set", "steps=1", "--set", "resample={}",
		"--set", "rollout.mode=interleaved")
	require.Equal(t, h.rowsOf(t, "scored", "rewards"), h.rowsOf(t, "scored", "function_scores"))
	require.Zero(t, h.rowsOf(t, "scored", "rewards where reward <> 0.25 * turns"))
	require.NoError(t, os.RemoveAll(folder))
	h.intact(t, "scored")
}

// writeSums writes a file of tasks.
func writeSums(t *testing.T, file string) {
	t.Helper()
	var text strings.Builder
	for i := range 24 {
		fmt.Fprintf(&text, `{"question": "%d + %d", "answer": "%d"}`+"\n", i+1, i+3, 2*i+4)
	}
	require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o600))
}

// sumsRecipe are the settings of a run on a file of tasks.
func sumsRecipe(file string) []string {
	return []string{"environment={name: rstar2_math, settings: {train: " + file + ", held_out_share: 0.25}}",
		"warm_start={steps: 10, batch: 8, optimizer: {lr: 0.006}}", "rollout.mode=interleaved", "evaluation.problems=4",
		"evaluation.samples=1", "resample={}", "rollout.max_turn_tokens=96", "rollout.max_tokens=192"}
}

// chosenBy is a filter by the answers of a run's model that drops nothing.
func chosenBy(run string) string {
	return "{difficulty: {model: " + run + ", samples: 2, at_least: 0, at_most: 2, shard_tasks: 6}}"
}

// A model's answers decide which tasks a run is trained on.
func TestDifficultyIsMeasured(t *testing.T) {
	h, _ := needs(t, sharedStack)
	file := filepath.Join(t.TempDir(), "sums.jsonl")
	writeSums(t, file)
	var set []string
	for _, s := range sumsRecipe(file) {
		set = append(set, "--set", s)
	}
	set = append(set, "--set", "steps=1")
	h.train(t, "answering", set...)
	h.train(t, "filtered", append(set, "--set", "data="+chosenBy("answering"))...)
	tasks := h.rowsOf(t, "filtered", "tasks")
	require.Positive(t, tasks)
	require.Equal(t, 2*tasks, h.rowsOf(t, "filtered", "task_answers"))
	require.Equal(t, 2*tasks, h.rowsOf(t, "filtered", "tasks where kept")*2, "every task is within the bounds")
	h.intact(t, "filtered")
}

// A judge at an address decides on answers. Its replies are committed before rewards are computed, so that a replay
// needs no judge, and its key is in no file.
func TestAJudgeDecides(t *testing.T) {
	longform.Need(t, environmentsVariable, "test-environments")
	h, _ := needs(t, emptyNamespace)
	const key = "sk-of-the-judge-e2e"
	judge := openaitest.New(t, func(w http.ResponseWriter, r openaitest.Request, n int) {
		if r.Authorization != "Bearer "+key {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		openaitest.Say(w, r, []string{"Match", "Mismatch"}[n%2])
	})
	h = h.with("ROPEWALK_E2E_JUDGE=" + key)
	args := []string{"run", "searchqa", "--json", "--run-id", "judged"}
	for _, s := range []string{"warm_start.steps=160", "rollout.prompts=4", "rollout.samples_per_prompt=4",
		"rollout.shard_groups=2", "evaluation={problems: 8, samples: 1, greedy: false, judged: true}", "resample={}",
		"reward={name: prs_long, judge: server}", "steps=1",
		fmt.Sprintf(`judge={url: %q, model: judge-1b, key: "${env:ROPEWALK_E2E_JUDGE}", attempts: 2}`, judge.URL)} {
		args = append(args, "--set", s)
	}
	h.run(t, args...).ok(t).report(t)
	require.Positive(t, h.rowsOf(t, "judged", "judgements where verdict = 'match'"))
	require.Positive(t, h.rowsOf(t, "judged", "evaluation_judgements"))
	require.NotEmpty(t, judge.Seen())
	judge.Close()
	h.intact(t, "judged")
	require.Empty(t, append(filesWith(t, h.dir, key), filesWith(t, h.objects, key)...))
}

// Two environments train in one run, and prompts and evaluations say which part they are of.
func TestAMixTrains(t *testing.T) {
	longform.Need(t, environmentsVariable, "test-environments")
	h, _ := needs(t, sharedStack)
	args := []string{"run", "household", "--json", "--run-id", "mixed"}
	for _, s := range []string{"environment={name: mix, parts: [{name: sokoban, settings: {size: 5, max_moves: 4}}, " +
		"{name: alfworld, weight: 3, settings: {rooms: bathroom, places: 3, essential: true, sparse: true}}]}",
		"warm_start.steps=20", "rollout.prompts=8", "rollout.samples_per_prompt=2", "rollout.shard_groups=4",
		"evaluation={problems: 8, samples: 1}", "policy.max_positions=1024", "rollout.max_tokens=1024",
		"steps=2"} {
		args = append(args, "--set", s)
	}
	h.run(t, args...).ok(t).report(t)
	parts := h.ask(t, "mixed", "select part, count(*) from prompts group by part order by count(*)")
	require.Equal(t, [][]any{{"sokoban", 4.0}, {"alfworld", 12.0}}, parts.Rows)
	require.Equal(t, 2, h.rowsOf(t, "mixed", "(select distinct part from evaluations)"))
	h.intact(t, "mixed")
}

// filesWith returns the files below a folder that hold a text.
func filesWith(t *testing.T, folder, text string) (found []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if os.IsNotExist(err) { // the servers remove files while this reads
			return nil
		}
		if strings.Contains(string(data), text) {
			found = append(found, path)
		}
		return err
	}))
	return found
}
