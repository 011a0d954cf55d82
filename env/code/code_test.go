package code

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
	"github.com/ropewalk/ropewalk/internal/testing/realdata"
)

func settings(train string) env.Settings {
	return env.Settings{"train": train, "held_out_share": 0.3, "duplicates": "refuse", "max_mb": 16, "max_row_kb": 64}
}

func openWith(t *testing.T, s env.Settings) env.Environment {
	t.Helper()
	require.NoError(t, Declaration.Pin(s))
	e, err := Declaration.Open(env.Options{Settings: s, MaxTurns: 1})
	require.NoError(t, err)
	return e
}

func TestGeneratedTasks(t *testing.T) {
	e := openWith(t, settings(""))
	envtest.Run(t, e, envtest.Case{Tasks: 30, Turns: 2, Nonsense: []string{"", "\n"}})
	levels := map[int]int{}
	for _, task := range envtest.Take(t, e, env.Train, 1, 200) {
		levels[task.Level]++
		tests, err := env.ReadTests(task.Answer)
		require.NoError(t, err)
		require.Equal(t, task.Text, tests.Prompt)
		require.Equal(t, len(inputs), strings.Count(tests.Test, "assert candidate("))
		for _, text := range fixed()[:2] {
			require.Contains(t, task.Text, text)
		}
		require.NotRegexp(t, `\b[AB]\b`, strings.TrimPrefix(task.Text, "A"), "every constant has its value")
	}
	require.Len(t, levels, 3)
}

// Each task of a file comes once before any repeats, and its known solution solves it.
func TestFiles(t *testing.T) {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, `{"task_id": "t/%d", "prompt": "def f(x):\n    \"\"\"Adds %d.\"\"\"\n", "entry_point": "f", `+
			`"test": "def check(c):\n    assert c(1) == %d\n"`, i, i, i+1)
		if i%2 == 0 {
			fmt.Fprintf(&b, `, "canonical_solution": "    return x + %d\n"`, i)
		}
		b.WriteString("}\n")
	}
	path := filepath.Join(t.TempDir(), "f.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	s := settings(path)
	e := openWith(t, s)
	require.Len(t, s["train_sha256"], 64)
	envtest.Run(t, e, envtest.Case{Tasks: 12, Turns: 2, Nonsense: []string{"", "\n"}})

	teacher := e.(env.Teacher)
	for i := range uint64(20) {
		rng := seed.Rand("test", i)
		task, err := teacher.Draw(rng, env.Lesson{})
		require.NoError(t, err)
		var moves []env.Move
		require.NoError(t, teacher.Demonstrate(t.Context(), rng, task, env.Lesson{},
			func(m env.Move) (env.Shown, error) {
				moves = append(moves, m)
				return env.Shown{}, nil
			}))
		require.Len(t, moves, 1)
		require.True(t, strings.HasPrefix(moves[0].Answer, task.Text+"    return x + "), "the body follows the prompt")
		state, _, err := e.Reset(t.Context(), task)
		require.NoError(t, err)
		_, step, err := e.Step(t.Context(), state, moves[0].Answer)
		require.NoError(t, err)
		require.True(t, step.Success)
	}
}

func TestBadRowsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"prompt": "a", "entry_point": "f"}`: ":1: test is missing or blank",
		`{"prompt": "a", "entry_point": "f(x)", "test": "t"}`: `:1: entry_point must be the name of a ` +
			`function, got "f(x)"`,
		`{"prompt": "a", "entry_point": "f", "test": ["assert f(1)"]}`: ":1: test must be text or " +
			"a number, got [",
		`{"prompt": "a", "entry_point": "f", "test": "assert half(1)"}`: ":1: test neither " +
			"defines check nor calls f",
		strings.Repeat(`{"prompt": "a", "entry_point": "f", "test": "f(1)"}`+"\n", 2): ":2: the same task is in ",
	} {
		path := filepath.Join(t.TempDir(), "f.jsonl")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.ErrorContains(t, Declaration.Pin(settings(path)), "train: "+path+want)
	}
}

// Rows of public sets become programs with tests, without a mapping. The tests tell which of several functions is
// meant.
func TestShapes(t *testing.T) {
	const add = "def add(a, b):\n  return help(a) + b\ndef help(x):\n  return x"
	for row, want := range map[string]function{
		`{"task_id": 2, "text": "Add.", "code": "def add(a, b):\n  return help(a) + b\ndef help(x):\n  return x", ` +
			`"test_list": ["assert add(1, 2) == 3", "assert add(0, 0) == 0"]}`: {ID: "2", Entry: "add",
			Prompt: "Add.\nThe program must pass these tests:\n\nassert add(1, 2) == 3\nassert add(0, 0) == 0\n",
			Test:   "assert add(1, 2) == 3\nassert add(0, 0) == 0\n", Solution: add},
		`{"prompt": "Size.", "code": "class Node: pass\ndef size(n): return 1\ndef last(): pass", "test_imports": [` +
			`"import math"], "test_setup_code": "root = Node(1)", "test_list": ["assert set([size(Node(2))])"]}`: {
			Entry: "size", Solution: "class Node: pass\ndef size(n): return 1\ndef last(): pass",
			Prompt: "Size.\nThe program must pass these tests:\n\nimport math\nroot = Node(1)\n" +
				"assert set([size(Node(2))])\n",
			Test: "import math\nroot = Node(1)\nassert set([size(Node(2))])\n"},
		`{"question": "Twice.", "starter_code": "class Solution:\n    def twice(self, x):\n", "input_output": ` +
			`"{\"fn_name\": \"twice\", \"inputs\": [[2]], \"outputs\": [4]}"}`: {Entry: "twice",
			Prompt: "Twice.\nclass Solution:\n    def twice(self, x):\n", Test: `json.loads("[[[2]],[4]]")`},
		`{"question": "Read.", "starter_code": "", "input_output": ` +
			`"{\"inputs\": [\"2\"], \"outputs\": [\"4\"]}"}`: {
			Entry: "__main__", Prompt: "Read.\n", Test: `json.loads("[[\"2\"],[\"4\"]]")`},
		`{"question_content": "Sum.", "question_id": "abc", "metadata": "{\"func_name\": \"sum\"}", ` +
			`"public_test_cases": "[{\"input\": \"[1, 2]\\n3\", \"output\": \"6\", \"testtype\": ` +
			`\"functional\"}]"}`: {ID: "abc", Entry: "sum", Prompt: "Sum.\n", Test: `json.loads("[[[[1,2],3]],[6]]")`},
	} {
		path := filepath.Join(t.TempDir(), "f.jsonl")
		require.NoError(t, os.WriteFile(path, []byte(row), 0o600))
		s := settings(path)
		s["held_out_share"] = 0
		task := envtest.Take(t, openWith(t, s), env.Train, 1, 1)[0]
		var got function
		require.NoError(t, env.Decode([]byte(task.Spec), &got))
		if strings.HasPrefix(want.Test, "json.") {
			require.Contains(t, got.Test, want.Test)
			want.Test = got.Test
		}
		require.Equal(t, want, got)
	}
}

// All of HumanEval loads from its packed file, with solutions to demonstrate.
func TestHumanEval(t *testing.T) {
	path, err := filepath.Abs(realdata.Path(t, "humaneval", "HumanEval.jsonl.gz"))
	require.NoError(t, err)
	s := settings(path)
	s["held_out_share"] = 0
	e := openWith(t, s)
	seen := map[string]bool{}
	for _, task := range envtest.Take(t, e, env.Train, 1, 164) {
		seen[task.ID] = true
		require.Contains(t, task.Spec, "canonical_solution")
	}
	require.Len(t, seen, 164)
	_, err = e.Task(t.Context(), env.Draw{Split: env.HeldOut})
	require.ErrorContains(t, err, "draw a function: none of the 164 tasks is held out")
}
