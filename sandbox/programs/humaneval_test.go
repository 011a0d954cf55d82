package programs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/code"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
	"github.com/ropewalk/ropewalk/internal/testing/realdata"
	"github.com/ropewalk/ropewalk/internal/testing/zygotetest"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// Every canonical solution of HumanEval passes, and every empty body fails.
func TestHumanEval(t *testing.T) {
	path, err := filepath.Abs(realdata.Path(t, "humaneval", "HumanEval.jsonl.gz"))
	require.NoError(t, err)
	zygotetest.Need(t)
	e, err := zygote.Open(zygote.Options{Workers: 2})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	world, err := code.Declaration.Open(env.Options{Settings: env.Settings{"train": path, "max_mb": 1,
		"max_row_kb": 64}, MaxTurns: 1})
	require.NoError(t, err)
	var pairs []symbolic.Pair
	var want []symbolic.Verdict
	for _, task := range envtest.Take(t, world, env.Train, 1, 164) {
		var row struct {
			Solution string `json:"canonical_solution"`
		}
		require.NoError(t, json.Unmarshal([]byte(task.Spec), &row))
		pairs = append(pairs, symbolic.Pair{Answer: row.Solution, Gold: task.Answer},
			symbolic.Pair{Answer: "    pass\n", Gold: task.Answer})
		want = append(want, symbolic.Equal, symbolic.Different)
	}
	graded, err := Run(t.Context(), e, pairs, limits)
	require.NoError(t, err)
	for i, g := range graded {
		require.NoError(t, g.Broken)
		require.Equal(t, want[i], g.Verdict, "%s\n%s", pairs[i].Answer, pairs[i].Gold)
	}
}

// Programs that read their standard input pass by what they print, and functions of a class Solution by what they
// return.
func TestPublicSets(t *testing.T) {
	zygotetest.Need(t)
	e, err := zygote.Open(zygote.Options{Workers: 2})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	const (
		taco = `{"question": "Print twice the number, and its half.", "input_output": "{\"inputs\": [\"2\\n\", ` +
			`[\"3\"]], \"outputs\": [\"4 1.0\\n\", [\"6 1.5\"]]}"}`
		live = `{"question_content": "Add.", "question_id": "a", "metadata": "{\"func_name\": \"add\"}", ` +
			`"public_test_cases": "[{\"input\": \"[1, 2]\\n3\", \"output\": \"6\", \"testtype\": ` +
			`\"functional\"}]", "private_test_cases": "[{\"input\": \"[]\\n3\", \"output\": \"3\", ` +
			`\"testtype\": \"functional\"}]"}`
	)
	var pairs []symbolic.Pair
	var want []symbolic.Verdict
	for _, c := range []struct {
		row, program string
		passes       bool
	}{
		{taco, "n = int(input())\nprint(2 * n, n / 2)", true},
		{taco, "import sys\nif __name__ == '__main__':\n    n = int(sys.stdin.buffer.read())\n" +
			"    sys.stdout.write(f'{2 * n}  {n / 2:.3f}\\n\\n')\n    sys.exit()", true},
		{taco, "print(4, 1.0)", false},
		{taco, "n = int(input())\nprint(2 * n)\nprint(n / 2)", false},
		{taco, "def f(): pass", false},
		{live, "class Solution:\n    def add(self, all, x):\n        return sum(all) + x", true},
		{live, "def add(all, x):\n    return sum(all) + x", true},
		{live, "def add(all, x):\n    return 6", false},
		{live, "class Solution: pass", false},
	} {
		path := filepath.Join(t.TempDir(), "f.jsonl")
		require.NoError(t, os.WriteFile(path, []byte(c.row), 0o600))
		world, err := code.Declaration.Open(env.Options{Settings: env.Settings{"train": path, "max_mb": 1,
			"max_row_kb": 64}, MaxTurns: 1})
		require.NoError(t, err)
		pairs = append(pairs, symbolic.Pair{Answer: c.program, Gold: envtest.Take(t, world, env.Train, 1, 1)[0].Answer})
		want = append(want, map[bool]symbolic.Verdict{true: symbolic.Equal, false: symbolic.Different}[c.passes])
	}
	graded, err := Run(t.Context(), e, pairs, limits)
	require.NoError(t, err)
	for i, g := range graded {
		require.NoError(t, g.Broken)
		require.Equal(t, want[i], g.Verdict, pairs[i].Answer)
	}
}
