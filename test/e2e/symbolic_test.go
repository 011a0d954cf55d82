package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withSympy is a home whose sandbox has sympy.
func withSympy(t *testing.T) *home {
	t.Helper()
	h, _ := needs(t, emptyNamespace)
	python := os.Getenv("ROPEWALK_SANDBOX_PYTHON")
	if python == "" {
		t.Skip("no interpreter with sympy (name one by ROPEWALK_SANDBOX_PYTHON)")
	}
	h = h.with("ROPEWALK_SANDBOX_PYTHON=" + python)
	h.ensureUp(t)
	return h
}

// trainSymbolic trains one step on questions with two ways to write the answer, which the warm start teaches: strings
// and values cannot tell that they are equal.
func (h *home) trainSymbolic(t *testing.T, run string) {
	t.Helper()
	var lines strings.Builder
	for i := range 40 {
		fmt.Fprintf(&lines, `{"question": "What is sum %d of one and x?", "answer": "%s"}`+"\n", i,
			[]string{"1+x", "x+1"}[i%2])
	}
	require.NoError(t, os.WriteFile(filepath.Join(h.cwd, "symbolic.jsonl"), []byte(lines.String()), 0o600))
	var set []string
	for _, s := range sumsRecipe(filepath.Join(h.cwd, "symbolic.jsonl")) {
		set = append(set, "--set", s)
	}
	h.run(t, recipe(run, append(set, "--set", "steps=1", "--set", "rollout.mode=staged", "--set",
		"reward.symbolic=true", "--set", "warm_start.steps=60")...)...).ok(t)
}

// The program grades answers in its own sandbox, keeps the verdicts, and replays the reward from them.
func TestAnswersAreComparedBySympy(t *testing.T) {
	h := withSympy(t)
	const run = "symbolic"
	h.trainSymbolic(t, run)
	asked := h.ask(t, run, "select distinct answer, gold, verdict, grader from gradings where step = 1 and "+
		"verdict = 'equal' order by all")
	require.NotEmpty(t, asked.Rows)
	require.Regexp(t, `^sympy \d`, asked.Rows[0][3])
	require.Positive(t, h.rowsOf(t, run, "rewards where verdict = 'symbolic' and reward > 0"))
	h.run(t, "replay", run, "--step", "1", "--from", "reward").ok(t)
	h.run(t, "replay", run, "--step", "1", "--from", "reward", "--through", "reward", "--set",
		"reward.symbolic=false").ok(t)
	h.run(t, "replay", "--check", run).ok(t)
	h.run(t, "verify", run).ok(t)
}
