package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// resolve decides which calls of a response can run. A protocol knows the names of its own tools; the loop knows which
// tools there are. So a call of a tool that only the loop knows can run, and a call of a tool that only the protocol
// knows gets the verdict on unknown tools.
func (s Settings) resolve(calls []env.ToolCall) {
	for i := range calls {
		c := &calls[i]
		_, known := tool.Find(s.tools(), c.Name)
		switch {
		case c.Error == "" && !known:
			c.Error, c.Message = env.CallUnknownTool, fmt.Sprintf("unknown tool %q", c.Name)
		case c.Error == env.CallUnknownTool && known:
			c.Error, c.Message = "", ""
			c.Code, c.Stdin = textArgument(c.Arguments, "code"), textArgument(c.Arguments, "input")
		}
	}
}

// textArgument returns an argument that is a text, for the column that the record has for it; "" if there is none.
func textArgument(arguments, name string) string {
	var given map[string]json.RawMessage
	var text string
	if json.Unmarshal([]byte(arguments), &given) != nil || json.Unmarshal(given[name], &text) != nil {
		return ""
	}
	return text
}

// CallRef identifies the tool call of a response.
type CallRef struct {
	Episode int // index among the episodes
	Turn    int
	Call    int // index among the turn's calls
}

// PendingCalls returns the calls to run before AbsorbOutcomes, in order of episode and call. It leaves out calls that
// cannot run. scope completes their keys.
func (l *Loop) PendingCalls(episodes []*Episode, scope tool.Scope) (calls []tool.Call, refs []CallRef) {
	for i, e := range episodes {
		if !e.AwaitsResults() {
			continue
		}
		turn := len(e.Turns) - 1
		for j, c := range e.Turns[turn].Parsed.Calls {
			if c.Error == "" {
				calls = append(calls, l.call(e, scope, turn, j))
				refs = append(refs, CallRef{Episode: i, Turn: turn, Call: j})
			}
		}
	}
	return calls, refs
}

// call returns the call of a tool that a turn has made.
func (l *Loop) call(e *Episode, scope tool.Scope, turn, call int) tool.Call {
	c := e.Turns[turn].Parsed.Calls[call]
	called, _ := tool.Find(l.settings.tools(), c.Name) // resolve has found it
	out := tool.Call{Key: e.Key(scope), Tool: called.Name, Name: c.Name, Arguments: json.RawMessage(c.Arguments),
		Question: e.Task.Text,
		Trace:    fmt.Sprintf("%s/%d/%d", e.TrajectoryID, turn, call)}
	out.Key.Turn, out.Key.Call = turn, call
	if !json.Valid(out.Arguments) { // the protocol's programs are not written as JSON
		out.Arguments = tools.PythonArguments(c.Code, c.Stdin)
	}
	return out
}

// Key returns the key of the episode's calls, without turn and call.
func (e *Episode) Key(scope tool.Scope) tool.Key {
	return tool.Key{Scope: scope, Label: e.Label, Step: e.Step, Group: e.Group, Sample: e.Sample}
}

// earlierCalls lists the episode's calls of a tool, and of those that share its state, that have a verdict of the tool.
func (l *Loop) earlierCalls(e *Episode, scope tool.Scope, of tool.Spec) []tool.Ran {
	var ran []tool.Ran
	for turn, t := range e.Turns {
		for i, r := range t.Results {
			if t.Parsed.Calls[i].Error != "" || r.Excluded != "" {
				continue
			}
			if c := l.call(e, scope, turn, i); l.settings.shares(of, c.Tool) {
				ran = append(ran, tool.Ran{Call: c, Result: tool.Result{Status: tool.Status(r.Status),
					ExitCode: int(r.ExitCode), Stdout: r.Stdout, Stderr: r.Stderr, Value: r.Value}})
			}
		}
	}
	return ran
}

// RunCalls runs the pending calls of the episodes and returns the outcome of each of PendingCalls, which AbsorbOutcomes
// takes. Stateful tools get the episodes' earlier calls. If progress is not nil, RunCalls calls it with the number of
// calls that have an outcome, possibly from several goroutines. An error means that a tool is broken.
func (l *Loop) RunCalls(ctx context.Context, box tool.Toolbox, scope tool.Scope, episodes []*Episode,
	progress func(done, total int)) ([]tool.Outcome, []CallRef, error) {
	calls, refs := l.PendingCalls(episodes, scope)
	if len(calls) == 0 {
		return nil, nil, nil
	}
	for _, s := range box.Specs() {
		if s.Stateful {
			l.addPast(calls, refs, episodes, scope, s)
		}
	}
	report := func(done int) {
		if progress != nil {
			progress(done, len(calls))
		}
	}
	outcomes, err := box.RunEach(ctx, calls, report)
	if err != nil {
		return nil, nil, fmt.Errorf("run tool calls of %s and %d more: %w", episodes[refs[0].Episode].TrajectoryID,
			len(refs)-1, err)
	}
	return outcomes, refs, nil
}

// shares reports whether calls of the named tool change the state of a tool.
func (s Settings) shares(of tool.Spec, name string) bool {
	named, ok := tool.Find(s.tools(), name)
	return ok && of.Shares(named)
}

// addPast sets the earlier calls of a tool's calls. The calls of an episode share them.
func (l *Loop) addPast(calls []tool.Call, refs []CallRef, episodes []*Episode, scope tool.Scope, of tool.Spec) {
	var past []tool.Ran
	episode := -1
	for i, ref := range refs {
		if calls[i].Tool != of.Name {
			continue
		}
		if ref.Episode != episode {
			episode, past = ref.Episode, l.earlierCalls(episodes[ref.Episode], scope, of)
		}
		calls[i].Past = past
	}
}

// MayCall reports whether the episode may run another call, now or later. The last allowed response runs no calls.
func (l *Loop) MayCall(e *Episode) bool {
	return l.settings.Environment == nil && e.Finish == "" &&
		(e.AwaitsResults() || e.History.Ordinary(len(e.Turns))+1 < l.settings.MaxTurns)
}

// AbsorbOutcomes takes the outcomes of PendingCalls in the same order. Every episode that awaited results receives its
// observation or ends. An episode with a call that broke is excluded.
func (l *Loop) AbsorbOutcomes(episodes []*Episode, outcomes []tool.Outcome) error {
	_, refs := l.PendingCalls(episodes, tool.Scope{})
	if len(refs) != len(outcomes) {
		return fmt.Errorf("absorb tool results: %d calls, %d results", len(refs), len(outcomes))
	}
	next := 0
	for _, e := range episodes {
		if !e.AwaitsResults() {
			continue
		}
		calls := e.Turns[len(e.Turns)-1].Parsed.Calls
		verdicts := make([]CallResult, len(calls))
		for j, c := range calls {
			var outcome *tool.Outcome
			if c.Error == "" {
				outcome = &outcomes[next]
				next++
			}
			verdicts[j] = l.verdict(e, verdicts[:j], c, outcome)
		}
		l.absorbResults(e, verdicts)
	}
	return nil
}

// verdict returns what the record keeps of a call. outcome is nil if the call could not run; before holds the verdicts
// on earlier calls of the same response.
func (l *Loop) verdict(e *Episode, before []CallResult, call env.ToolCall, outcome *tool.Outcome) CallResult {
	if outcome != nil && outcome.Broken != nil {
		err := outcome.Broken
		called, _ := tool.Find(l.settings.tools(), call.Name)
		slog.Warn("exclude a trajectory: a tool broke on a call of it", "tool", called.Name, "trajectory",
			e.TrajectoryID, "error", err, "stack", rescue.Stack(err))
		return CallResult{Excluded: Reason(called.BlameOn(), err.Error())}
	}
	if outcome != nil && outcome.Status == tool.BadArguments {
		// the record and the policy see the verdict that the protocol's parser gives on its own tool's arguments
		call.Error, call.Message, outcome = env.CallBadArgument, outcome.Stderr, nil
	}
	if outcome == nil {
		return CallResult{Status: string(call.Error), Body: l.body(e, before, call, nil)}
	}
	r := outcome.Result
	body := l.body(e, before, call, protocol.Ran(&sandbox.Result{Status: sandbox.Status(r.Status),
		ExitCode: r.ExitCode, Stdout: r.Stdout, Stderr: r.Stderr, Value: r.Value}))
	return CallResult{Status: string(r.Status), ExitCode: int32(r.ExitCode), Stdout: valid(r.Stdout),
		Stderr: valid(r.Stderr), Value: valid(r.Value), Body: body}
}

// valid makes text valid for the record's string columns.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// absorbResults sets the verdicts of the last turn and the next context. A call without a verdict ends the episode,
// because its next observation is unknown.
func (l *Loop) absorbResults(e *Episode, verdicts []CallResult) {
	e.Turns[len(e.Turns)-1].Results = verdicts
	for _, v := range verdicts {
		if v.Excluded != "" {
			e.exclude(v.Excluded)
			l.trees.giveUp(e)
			return
		}
	}
	v := protocol.View{Task: e.Task.Text, Tools: l.prompted, Turn: len(e.Turns), Rounds: e.rounds()}
	if e.IsSummary(len(e.Turns)) {
		l.setContext(e, protocol.AskSummary(l.protocol, v))
		return
	}
	text, err := l.context(v)
	if err != nil {
		e.exclude(Reason("protocol", err.Error()))
		return
	}
	l.setContext(e, text)
}
