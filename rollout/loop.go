package rollout

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
)

// Settings bound an episode.
type Settings struct {
	MaxTurns         int
	MaxTurnTokens    int // of one response
	MaxTokens        int // of what the policy sees and writes at a turn: of the whole trajectory, without History
	History          int // latest turns that a prompt holds after the task; 0 = all
	MaxToolTextBytes int // of the tool's own text in one tool response; 0 = unbounded
	ToolTextSide     protocol.Side
	Temperature      float64 // 0 = the most likely tokens
	CallLimits       sandbox.Limits
}

// Validate names the field that no episode could run with.
func (s Settings) Validate() error {
	for _, f := range []struct {
		name  string
		value int
	}{{"max turns", s.MaxTurns}, {"max turn tokens", s.MaxTurnTokens}, {"max tokens", s.MaxTokens}} {
		if f.value < 1 {
			return fmt.Errorf("check rollout settings: %s must be at least 1, got %d", f.name, f.value)
		}
	}
	if s.MaxToolTextBytes < 0 || s.History < 0 || !(s.Temperature >= 0) {
		return fmt.Errorf("check rollout settings: max tool text bytes %d, history %d and temperature %g must not be negative",
			s.MaxToolTextBytes, s.History, s.Temperature)
	}
	switch s.ToolTextSide {
	case "", protocol.SideLeft, protocol.SideMiddle, protocol.SideRight:
		return nil
	}
	return fmt.Errorf("check rollout settings: tool text side %q is none of left, right, middle", s.ToolTextSide)
}

// Loop advances episodes. It holds no state of its own and is safe for concurrent use over
// distinct episodes.
type Loop struct {
	settings Settings
	tok      *tokenizer.Tokenizer
	runSeed  uint64
	stop     int32
}

// NewLoop makes the loop of one run; the tokenizer must know the end-of-turn tag.
func NewLoop(settings Settings, tok *tokenizer.Tokenizer, runSeed uint64) (*Loop, error) {
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	stop, ok := tok.ID(protocol.EndOfTurn)
	if !ok {
		return nil, fmt.Errorf("start the agent loop: the tokenizer has no token %q", protocol.EndOfTurn)
	}
	return &Loop{settings: settings, tok: tok, runSeed: runSeed, stop: stop}, nil
}

// Start returns a new episode that awaits its first response.
func (l *Loop) Start(id Identity, problem env.Problem) *Episode {
	return l.start(id, problem, l.tok.Encode(protocol.Prompt(problem.Text)))
}

func (l *Loop) start(id Identity, problem env.Problem, prompt []int32) *Episode {
	e := &Episode{
		Identity: id, GroupID: schema.GroupID(id.Step, id.Group),
		TrajectoryID: schema.TrajectoryID(id.Step, id.Group, id.Sample),
		Problem:      problem, Context: prompt, History: l.settings.History,
	}
	l.stopIfFull(e)
	return e
}

// stopIfFull ends an episode that has no room for a single further token.
func (l *Loop) stopIfFull(e *Episode) {
	if len(e.Prefix()) >= l.settings.MaxTokens {
		e.Context, e.Observation, e.Finish = nil, "", FinishLength
	}
}

// NextRequest asks for the next response of every episode that awaits one; rows holds their
// indices. An empty rows means that there is nothing to generate.
func (l *Loop) NextRequest(episodes []*Episode) (req policy.GenerateRequest, rows []int) {
	req = policy.GenerateRequest{
		Role: policy.RolePolicy, Temperature: l.settings.Temperature, Stop: []int32{l.stop},
	}
	for i, e := range episodes {
		if !e.AwaitsResponse() {
			continue
		}
		prefix := e.Prefix()
		rows = append(rows, i)
		req.Prefixes = append(req.Prefixes, prefix)
		req.Streams = append(req.Streams, e.stream(l.runSeed, len(e.Turns)))
		req.MaxTokens = append(req.MaxTokens, min(l.settings.MaxTurnTokens, l.settings.MaxTokens-len(prefix)))
	}
	return req, rows
}

// Absorb appends the responses that answer the request over rows, written by the policy with the
// given version.
func (l *Loop) Absorb(episodes []*Episode, rows []int, g policy.Generated, version string) error {
	if err := l.checkResponses(g, len(rows)); err != nil {
		return err
	}
	for j, i := range rows {
		l.absorb(episodes[i], Turn{
			Response: g.Tokens[j], LogProbs: g.LogProbs[j], Entropies: g.Entropies[j],
			Finish: g.Finish[j], PolicyVersion: version,
		})
	}
	return nil
}

// checkResponses checks that there are n responses, each of one token or more with its outputs.
func (l *Loop) checkResponses(g policy.Generated, n int) error {
	if len(g.Tokens) != n || len(g.LogProbs) != n || len(g.Entropies) != n || len(g.Finish) != n {
		return fmt.Errorf("absorb %d responses: got %d", n, len(g.Tokens))
	}
	for j, ids := range g.Tokens {
		if len(ids) == 0 || len(g.LogProbs[j]) != len(ids) || len(g.Entropies[j]) != len(ids) {
			return fmt.Errorf("absorb response %d: %d tokens, %d log-probabilities, %d entropies",
				j, len(ids), len(g.LogProbs[j]), len(g.Entropies[j]))
		}
		if err := l.tok.Check(ids); err != nil {
			return fmt.Errorf("absorb response %d: %w", j, err)
		}
	}
	return nil
}

// absorb appends one turn whose response is given, and decides whether the episode goes on.
func (l *Loop) absorb(e *Episode, t Turn) {
	t.Context, t.Observation = e.Context, e.Observation
	t.Text = strings.ToValidUTF8(l.tok.Decode(t.Response), "\uFFFD")
	t.Parsed = protocol.Parse(t.Text)
	e.Turns = append(e.Turns, t)
	e.Context, e.Observation = nil, ""
	switch {
	case t.Finish == policy.FinishLength:
		e.Finish = FinishLength
	case len(t.Parsed.Calls) == 0 && t.Parsed.AnswerTags > 0:
		e.Finish = FinishAnswered
	case len(t.Parsed.Calls) == 0:
		e.Finish = FinishNoAction
	case len(e.Turns) >= l.settings.MaxTurns:
		e.Finish = FinishMaxTurns
	}
}

// CallRef says whose call a sandbox call is.
type CallRef struct {
	Episode int // index among the episodes
	Turn    int
	Call    int // index among the turn's calls
}

// Trace names the call in logs.
func (r CallRef) Trace(episodes []*Episode) string {
	return fmt.Sprintf("%s/%d/%d", episodes[r.Episode].TrajectoryID, r.Turn, r.Call)
}

// PendingCalls returns the calls to run before AbsorbResults, in order of episode and call. Calls
// that cannot run are not among them.
func (l *Loop) PendingCalls(episodes []*Episode) (calls []sandbox.Call, refs []CallRef) {
	for i, e := range episodes {
		if !e.AwaitsResults() {
			continue
		}
		turn := len(e.Turns) - 1
		for j, c := range e.Turns[turn].Parsed.Calls {
			if c.Error == "" {
				calls = append(calls, l.call(c))
				refs = append(refs, CallRef{Episode: i, Turn: turn, Call: j})
			}
		}
	}
	return calls, refs
}

// call is what the sandbox runs of a call that could be read.
func (l *Loop) call(c env.ToolCall) sandbox.Call {
	return sandbox.Call{Code: c.Code, Stdin: c.Stdin, Limits: l.settings.CallLimits}
}

// AbsorbResults takes the results of PendingCalls, in its order, and gives every episode that
// awaited results its observation, or ends it.
func (l *Loop) AbsorbResults(episodes []*Episode, results []sandbox.Result) error {
	outcomes := make([]sandbox.Outcome, len(results))
	for i, r := range results {
		outcomes[i].Result = r
	}
	return l.AbsorbOutcomes(episodes, outcomes)
}

// AbsorbOutcomes is AbsorbResults where single calls may have broken: their episodes are excluded.
func (l *Loop) AbsorbOutcomes(episodes []*Episode, outcomes []sandbox.Outcome) error {
	_, refs := l.PendingCalls(episodes)
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
			var outcome *sandbox.Outcome
			if c.Error == "" {
				outcome = &outcomes[next]
				next++
			}
			verdicts[j] = l.verdict(e, c, outcome)
		}
		l.absorbResults(e, verdicts)
	}
	return nil
}

func (l *Loop) verdict(e *Episode, call env.ToolCall, outcome *sandbox.Outcome) CallResult {
	var result *sandbox.Result
	if outcome != nil {
		if err := outcome.Broken; err != nil {
			slog.Warn("exclude a trajectory: the sandbox broke on a call of it", "trajectory", e.TrajectoryID, "error", err, "stack", rescue.Stack(err))
			return CallResult{Excluded: Reason("sandbox", err.Error())}
		}
		result = &outcome.Result
	}
	limit := protocol.Limit{Bytes: l.settings.MaxToolTextBytes, Side: l.settings.ToolTextSide}
	v := CallResult{Status: string(call.Error), Body: limit.RenderResponse(call, result)}
	if result != nil {
		v.Status, v.ExitCode = string(result.Status), int32(result.ExitCode)
		v.Stdout, v.Stderr, v.Value = valid(result.Stdout), valid(result.Stderr), valid(result.Value)
	}
	return v
}

// valid makes text fit the record's string columns.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// absorbResults sets the verdicts of the last turn and the next context. A call without a verdict
// ends the episode: what it would have seen next is not known.
func (l *Loop) absorbResults(e *Episode, verdicts []CallResult) {
	e.Turns[len(e.Turns)-1].Results = verdicts
	bodies := make([]string, len(verdicts))
	for i, v := range verdicts {
		if v.Excluded != "" {
			e.exclude(v.Excluded)
			return
		}
		bodies[i] = v.Body
	}
	e.Observation = protocol.RenderTurn(bodies)
	e.Context = l.tok.Encode(e.Observation)
	l.stopIfFull(e)
}
