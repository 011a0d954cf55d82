package e2e

import (
	"encoding/json"
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

// importSymbolic imports two questions whose answers strings and values cannot tell from their golds.
func (h *home) importSymbolic(t *testing.T, run string) {
	t.Helper()
	var lines []string
	for _, q := range []struct {
		gold    string
		answers [4]string
	}{
		{"1+x", [4]string{"x+1", "x+2", "1+x", "x+1"}},
		{`\frac{\sqrt 2}{2}x`, [4]string{`\frac{1}{\sqrt 2}x`, "north", `0.5\sqrt{2}x`, "x"}},
	} {
		item := map[string]any{"question": "What equals " + q.gold + "?", "ground_truth": "#### " + q.gold}
		for i, system := range []string{"6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"} {
			item[system] = map[string]any{"is_correct": i%2 == 0, "solution": "1+1 = <<1+1=2>>2\n#### " + q.answers[i]}
		}
		line, err := json.Marshal(item)
		require.NoError(t, err)
		lines = append(lines, string(line))
	}
	require.NoError(t, os.WriteFile(filepath.Join(h.cwd, "symbolic.jsonl"), []byte(strings.Join(lines, "\n")), 0o600))
	h.run(t, "import", "gsm8k-solutions", "symbolic.jsonl", "--run-id", run, "--set", "reward.symbolic=true").ok(t)
}

// The program grades answers in its own sandbox, keeps the verdicts, and replays the reward from them.
func TestSymbolicImport(t *testing.T) {
	h := withSympy(t)
	const run = "symbolic"
	h.importSymbolic(t, run)
	asked := h.ask(t, run, "select right(trajectory_id, 8) t, answer, verdict, grader from gradings order by all")
	require.Len(t, asked.Rows, 7)
	require.Equal(t, []any{"0000/000", "x+1", "equal"}, asked.Rows[0][:3])
	require.Regexp(t, `^sympy \d`, asked.Rows[0][3])
	verdicts := h.ask(t, run, "select verdict, count(*) n from rewards group by all order by all")
	require.Equal(t, [][]any{{"exact", 1.0}, {"symbolic", 4.0}, {"wrong", 3.0}}, verdicts.Rows)
	h.run(t, "replay", run, "--step", "1", "--from", "reward").ok(t)
	h.run(t, "replay", run, "--step", "1", "--from", "reward", "--through", "reward", "--set",
		"reward.symbolic=false").ok(t)
	h.run(t, "replay", "--check", run).ok(t)
	h.run(t, "verify", run).ok(t)
}
