package gsm8k

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/realdata"
	"github.com/ropewalk/ropewalk/rl/reward"
)

// released reads the real file of model solutions, if it is present.
func released(t *testing.T) []Item {
	t.Helper()
	file, err := os.Open(realdata.Path(t, "gsm8k", "example_model_solutions_first_half.jsonl"))
	require.NoError(t, err)
	defer file.Close()
	items, err := Read(file)
	require.NoError(t, err)
	return items
}

// runner is a Python program that runs the code of each line separately. It prints the output as JSON, or nothing for
// code that raised.
const runner = `
import contextlib, io, json, sys, warnings
warnings.simplefilter("ignore")
for line in sys.stdin:
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(json.loads(line), "<call>", "exec"), {})
        print(json.dumps(out.getvalue()))
    except Exception:
        print(json.dumps(""))
`

// runPython returns the output of each program.
func runPython(t *testing.T, programs []string) []string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not there, which the calls run in")
	}
	var in strings.Builder
	for _, p := range programs {
		data, err := json.Marshal(p)
		require.NoError(t, err)
		in.Write(append(data, '\n'))
	}
	cmd := exec.CommandContext(context.Background(), python, "-I", "-c", runner)
	cmd.Stdin, cmd.Stderr = strings.NewReader(in.String()), os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	var printed []string
	for line := range strings.Lines(string(out)) {
		var s string
		require.NoError(t, json.Unmarshal([]byte(line), &s))
		printed = append(printed, s)
	}
	require.Len(t, printed, len(programs))
	return printed
}

// At least 99% of all annotations must equal Python's value of their expressions.
func TestCalculatorAgreesWithAnnotations(t *testing.T) {
	type place struct {
		line   int
		system string
		call   Call
	}
	var places []place
	var programs []string
	for _, item := range released(t) {
		for _, trajectory := range item.Trajectories {
			for _, c := range trajectory.Calls() {
				places = append(places, place{item.Line, trajectory.System, c})
				programs = append(programs, c.Code)
			}
		}
	}
	agreed := 0
	for i, out := range runPython(t, programs) {
		p := places[i]
		if Agrees(out, p.call.Value) {
			agreed++
			continue
		}
		t.Logf("line %d %s: %s = %s; the calculator says %q", p.line, p.system, p.call.Expression, p.call.Value,
			strings.TrimSpace(out))
	}
	rate := float64(agreed) / float64(len(places))
	t.Logf("calculator agreement %d/%d = %.4f", agreed, len(places), rate)
	require.GreaterOrEqual(t, rate, 0.99)
}

// At least 99.5% of the source's verdicts must equal ours.
func TestRewardAgreesWithIsCorrect(t *testing.T) {
	agreed, all := 0, 0
	for _, item := range released(t) {
		for _, trajectory := range item.Trajectories {
			all++
			v := reward.Compare(trajectory.FinalAnswer, item.Gold, reward.Options{})
			if v.Correct() == trajectory.Correct {
				agreed++
				continue
			}
			t.Logf("line %d %s: answer %q, gold %q: is_correct %v, ours %s", item.Line, trajectory.System,
				trajectory.FinalAnswer, item.Gold, trajectory.Correct, v)
		}
	}
	rate := float64(agreed) / float64(all)
	t.Logf("reward agreement %d/%d = %.4f", agreed, all, rate)
	require.GreaterOrEqual(t, rate, 0.995)
}

// The whole released file: its counts, and that no byte of a solution is lost.
func TestReleasedFile(t *testing.T) {
	items := released(t)
	require.Len(t, items, 660)
	tables, err := Rows(0, items, bytesOf)
	require.NoError(t, err)
	require.Len(t, tables.Trajectories, 2640)
	require.Len(t, tables.ToolCalls, 8268)
	require.Len(t, tables.Turns, 2640+8268)
	checkTurns(t, tables)
	unanswered := 0
	for _, r := range tables.Trajectories {
		if !r.HasAnswer {
			unanswered++
		}
	}
	require.Equal(t, 7, unanswered)
}
