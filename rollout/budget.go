package rollout

import (
	"fmt"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// Budgets of tool calls. Each is 0 without a limit. A call beyond one is not run; its verdict says so, and the policy
// reads it like any other. (AEPO's and ARPO's releases end a trajectory at 6 calls instead. Here it can still answer.)
type Budgets struct {
	Calls     int // calls that one episode may run
	TurnCalls int // calls that one response may run
	// ToolTextBytes bounds the bodies of all tool responses of an episode together. The body that reaches it is cut,
	// and later ones say only that the budget is used up.
	ToolTextBytes int
}

// checked names the first budget that is negative.
func (b Budgets) checked() error {
	for _, n := range []int{b.Calls, b.TurnCalls, b.ToolTextBytes} {
		if n < 0 {
			return fmt.Errorf("check rollout settings: budgets of %d calls, %d calls in a turn and %d bytes of tool "+
				"text must not be negative", b.Calls, b.TurnCalls, b.ToolTextBytes)
		}
	}
	return nil
}

// refuse gives the calls of a response that exceed a budget their verdict. ran is the number of calls that the episode
// has run before.
func (b Budgets) refuse(calls []env.ToolCall, ran int) {
	inTurn := 0
	for i := range calls {
		c := &calls[i]
		switch {
		case c.Error != "":
			continue
		case b.TurnCalls > 0 && inTurn >= b.TurnCalls:
			c.Error, c.Message = env.CallOverBudget, fmt.Sprintf("not run: a response can run %s", counted(b.TurnCalls))
			continue
		case b.Calls > 0 && ran+inTurn >= b.Calls:
			c.Error, c.Message = env.CallOverBudget, fmt.Sprintf("not run: the limit of %s is reached; give the answer",
				counted(b.Calls))
			continue
		}
		inTurn++
	}
}

// counted counts calls in words.
func counted(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}

// countRunnable counts the calls of the episode that could run.
func (e *Episode) countRunnable() int {
	n := 0
	for _, t := range e.Turns {
		for _, c := range t.Parsed.Calls {
			if c.Error == "" {
				n++
			}
		}
	}
	return n
}

// toolText counts the bytes of the tool responses that the policy has read or is about to read.
func (e *Episode) toolText(pending []CallResult) int {
	n := 0
	for _, t := range e.Turns {
		n += sizeOfBodies(t.Results)
	}
	return n + sizeOfBodies(pending)
}

func sizeOfBodies(results []CallResult) (bytes int) {
	for _, r := range results {
		bytes += len(r.Body)
	}
	return bytes
}

// usedUp is what the policy reads instead of a result that the budget of tool text has no room for.
const usedUp = "not shown: the limit of tool text is reached"

// body renders a result within the budget of tool text that is left.
func (l *Loop) body(e *Episode, before []CallResult, call env.ToolCall, r *protocol.Result) string {
	limit := protocol.Limit{Bytes: l.settings.MaxToolTextBytes, Side: l.settings.ToolTextSide}
	total := l.settings.Budgets.ToolTextBytes
	if total == 0 {
		return l.protocol.Body(limit, call, r)
	}
	left := total - e.toolText(before)
	switch {
	case left > 0 && (limit.Bytes == 0 || left < limit.Bytes):
		limit.Bytes = left
	case left <= 0 && r != nil:
		return l.protocol.Body(protocol.Limit{}, call, &protocol.Result{Output: usedUp, Failed: r.Failed,
			Reason: r.Reason})
	case left <= 0 && call.Error != env.CallOverBudget: // the message may hold text of the policy or of a tool
		call.Message = usedUp
		return l.protocol.Body(protocol.Limit{}, call, nil)
	}
	return l.protocol.Body(limit, call, r)
}

// beyondBudget reports whether a call was refused because of a budget. It could be parsed.
func beyondBudget(c env.ToolCall) bool { return c.Error == env.CallOverBudget }
