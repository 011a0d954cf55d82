package rollout

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/golden"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/tool"
)

var update = flag.Bool("update", false, "write the golden files again")

// describe shows an episode: its text, then one token per line, with a mark on tokens that the policy wrote.
func describe(l *Loop, e *Episode) string {
	var b strings.Builder
	row := TrajectoryRow(e)
	fmt.Fprintf(&b, "finish %s, answer %q, gold %q, %d calls, %d errors, %d tokens, %d of them the policy's\n\n",
		row.Finish, row.FinalAnswer, row.Gold, row.ToolCalls, row.ToolErrors, row.Tokens, row.ResponseTokens)
	tokens, mask := e.Sequence()
	fmt.Fprintf(&b, "%s\n\n", l.tok.Decode(tokens))
	for i := range tokens {
		fmt.Fprintf(&b, "%s %q\n", []string{" ", "*"}[mask[i]], l.tok.Decode(tokens[i:i+1]))
	}
	return b.String()
}

// nameError is the message of Python 3.11.
const nameError = `Traceback (most recent call last):
  File "main.py", line 1, in <module>
    x=12+3;print(y)
                 ^
NameError: name 'y' is not defined
`

func TestGoldenTrajectory(t *testing.T) {
	l := newLoop(t, settings, 1)
	e := start(l)
	feed(t, l, e, protocol.CallResponse("x=12+3;print(y)"), policy.FinishStop)
	failure := tool.Result{Status: tool.RuntimeError, ExitCode: 1, Stderr: nameError}
	if err := l.AbsorbOutcomes([]*Episode{e}, []tool.Outcome{{Result: failure}}); err != nil {
		t.Fatal(err)
	}
	feed(t, l, e, protocol.CallResponse("print(12+3)"), policy.FinishStop)
	runCalls(t, l, e)
	feed(t, l, e, protocol.AnswerResponse("15"), policy.FinishStop)
	golden.Check(t, "trajectory.txt", describe(l, e), *update)
}

// Each added token is one token at every place. The tokenizer of a run is part of its checkpoints, so a change of this
// list makes different checkpoints.
func TestGoldenVocabulary(t *testing.T) {
	l := newLoop(t, settings, 1)
	var b strings.Builder
	for id := 256; id < l.tok.VocabSize(); id++ {
		fmt.Fprintf(&b, "%d %q\n", id, l.tok.Decode([]int32{int32(id)}))
	}
	golden.Check(t, "vocabulary.txt", b.String(), *update)
}
