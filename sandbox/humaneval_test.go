package sandbox_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// humanEvalFile is OpenAI's HumanEval (openai/human-eval, MIT). It is kept next to the repository, not in it.
var humanEvalFile = filepath.Join("..", "..", "shared", "data", "humaneval", "HumanEval.jsonl.gz")

// humanEvalTask is one line of the file.
type humanEvalTask struct {
	ID       string `json:"task_id"`
	Prompt   string `json:"prompt"` // imports, perhaps other functions, the head and docstring of the entry point
	Entry    string `json:"entry_point"`
	Solution string `json:"canonical_solution"` // the function's body
	Test     string `json:"test"`               // defines check(candidate)
}

func (h humanEvalTask) call(body string) sandbox.Call {
	return sandbox.Call{Code: h.Prompt + body + "\n" + h.Test + "\ncheck(" + h.Entry + ")\n"}
}

// humanEvalRounds is 1, or the value of ROPEWALK_HUMANEVAL_ROUNDS.
func humanEvalRounds(t *testing.T) int {
	t.Helper()
	said := os.Getenv("ROPEWALK_HUMANEVAL_ROUNDS")
	if said == "" {
		return 1
	}
	rounds, err := strconv.Atoi(said)
	require.NoError(t, err, "ROPEWALK_HUMANEVAL_ROUNDS")
	return rounds
}

// Every canonical solution passes its tests and every empty body fails them, in every round and whatever ran before.
func TestHumanEval(t *testing.T) {
	tasks := readHumanEval(t)
	require.Len(t, tasks, 164)
	executor, err := zygote.Open(zygote.Options{})
	if errors.Is(err, sandbox.ErrNoPython) && os.Getenv("ROPEWALK_REQUIRE_PYTHON") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, executor.Close()) })

	rounds := humanEvalRounds(t)
	calls := make([]sandbox.Call, 0, 2*len(tasks)) // solution and empty body alternate
	for _, task := range tasks {
		calls = append(calls, task.call(task.Solution), task.call("    pass\n"))
	}
	random := rand.New(rand.NewPCG(6, 164))
	for round := range rounds {
		order := random.Perm(len(calls))
		shuffled := make([]sandbox.Call, len(calls))
		for at, i := range order {
			shuffled[at] = calls[i]
		}
		results, err := executor.Run(t.Context(), shuffled)
		require.NoError(t, err, "round %d", round)
		for at, i := range order {
			want := sandbox.StatusOK
			if i%2 == 1 {
				want = sandbox.StatusRuntime
			}
			require.Equal(t, want, results[at].Status, "round %d, %s, solution %v: %s", round, tasks[i/2].ID, i%2 == 0,
				results[at].Stderr)
		}
	}
}

func readHumanEval(t *testing.T) []humanEvalTask {
	file, err := os.Open(humanEvalFile)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("HumanEval is not there: %v (openai/human-eval, data/HumanEval.jsonl.gz)", err)
	}
	require.NoError(t, err)
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	require.NoError(t, err)
	var tasks []humanEvalTask
	lines := bufio.NewScanner(unpacked)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var task humanEvalTask
		require.NoError(t, json.Unmarshal(lines.Bytes(), &task), "line %d", len(tasks)+1)
		tasks = append(tasks, task)
	}
	require.NoError(t, lines.Err())
	return tasks
}
