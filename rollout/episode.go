package rollout

import (
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/tool"
)

// Finish says why an episode ended; "" while it runs.
type Finish string

// The ends of an episode.
const (
	FinishAnswered Finish = "answered"  // no call, and at least one closed answer pair
	FinishNoAction Finish = "no_action" // neither call nor answer
	FinishMaxTurns Finish = "max_turns" // the last turn allowed still called a tool
	FinishLength   Finish = "length"    // a budget of tokens was used up
	FinishExcluded Finish = "excluded"  // the engine, a tool or the environment failed on it
	FinishDone     Finish = "done"      // the environment ended it
)

// CallResult is the verdict on one call of a turn, as the record keeps it.
type CallResult struct {
	Status   string // a tool.Status, or the env.CallError of a call that could not run
	ExitCode int32
	Stdout   string
	Stderr   string
	Value    string
	Body     string // the body of the tool response
	// Excluded says why there is no verdict. The other fields are then empty.
	Excluded string
}

// Failed reports whether the call counts as a tool error.
func (r CallResult) Failed() bool { return r.Excluded == "" && r.Status != string(tool.OK) }

// Turn is one finished generation, with the results of its calls once they are known.
type Turn struct {
	Context     []int32 // prompt or observation
	Observation string  // text of the context; "" at turn 0
	Response    []int32
	Text        string // text of the response, made valid UTF-8
	LogProbs    []float32
	Entropies   []float32
	Finish      policy.Finish
	Parsed      protocol.Parsed
	Results     []CallResult // one per call; nil until the results are known
	// Transition is the result of the action in an interactive environment, nil until it is known.
	Transition *Transition
	// PolicyVersion is the digest of the checkpoint that wrote the response.
	PolicyVersion string
	// Excluded says why there is no response. The turn is then the last turn of the episode.
	Excluded string
	// Fork is what a tree knows of the turn; nil without a tree.
	Fork *Fork
}

// Episode is one trajectory that is not complete yet.
type Episode struct {
	Identity
	GroupID      string
	TrajectoryID string
	Task         env.Task
	Turns        []Turn
	// Context holds the next turn's context and Observation its text, while the episode awaits a response.
	Context     []int32
	Observation string
	Finish      Finish
	Excluded    string // the reason, if Finish is FinishExcluded

	History History // earlier turns that a prefix holds

	Protocol protocol.Protocol // nil is protocol.RStar2
	// State is the state of an interactive episode. It is nil before the first action and in an episode that is not
	// interactive.
	State env.State
	// Seen is what the environment shows now: the observation that Context was rendered from.
	Seen env.Observation
	// Node is the episode's place in a tree of samples; nil without a tree.
	Node *Node
}

func (e *Episode) spec() protocol.Spec { return Settings{Protocol: e.Protocol}.protocol().Spec() }

// AwaitsResponse reports whether the policy has to write the next response.
func (e *Episode) AwaitsResponse() bool { return e.Finish == "" && e.Context != nil }

// AwaitsResults reports whether the last response's calls have to be answered, or its action applied.
func (e *Episode) AwaitsResults() bool { return e.Finish == "" && e.Context == nil }

// Prefix returns the tokens that the policy sees before the next response.
func (e *Episode) Prefix() []int32 { return e.seen(len(e.Turns), e.Context) }

// seen returns the tokens that the policy sees before its response at a turn with the given context.
func (e *Episode) seen(turn int, context []int32) []int32 {
	tokens := make([]int32, 0, e.Tokens())
	past := make([]Span, turn)
	for k, t := range e.Turns[:turn] {
		tokens = append(append(tokens, t.Context...), t.Response...)
		past[k] = Span{Begin: len(tokens) - len(t.Response), End: len(tokens)}
	}
	tokens = append(tokens, context...)
	head := len(context)
	if turn > 0 {
		head = len(e.Turns[0].Context)
	}
	return WindowAfter(head, past, e.History).Tokens(tokens, len(tokens))
}

// Tokens counts every token so far, including the next turn's context.
func (e *Episode) Tokens() int {
	n := len(e.Context)
	for _, t := range e.Turns {
		n += len(t.Context) + len(t.Response)
	}
	return n
}

// Size estimates the memory that the episode holds, in bytes.
func (e *Episode) Size() int64 {
	const turnBytes = 512 // size of a turn's own structures
	n := 4*len(e.Context) + len(e.Observation) + len(e.Task.Text) + len(e.State) + turnBytes
	for _, t := range e.Turns {
		n += 4*len(t.Context) + 12*len(t.Response) + len(t.Observation) + 2*len(t.Text) + turnBytes
		for _, r := range t.Results {
			n += len(r.Stdout) + len(r.Stderr) + len(r.Value) + len(r.Body)
		}
		if t.Transition != nil {
			n += t.Transition.size()
		}
	}
	return int64(n)
}

// Sequence returns the tokens of all turns with their loss mask: 1 where the policy wrote.
func (e *Episode) Sequence() (tokens, mask []int32) {
	for _, t := range e.Turns {
		tokens = append(append(tokens, t.Context...), t.Response...)
		mask = append(mask, t.mask()...)
	}
	return tokens, mask
}

func (t *Turn) mask() []int32 { return maskOf(len(t.Context)+len(t.Response), len(t.Response)) }

// maskOf returns the loss mask of a number of tokens, of which the policy wrote the last ones.
func maskOf(tokens, written int) []int32 {
	mask := make([]int32, tokens)
	for i := tokens - written; i < tokens; i++ {
		mask[i] = 1
	}
	return mask
}

// parsedCalls counts the calls that could be parsed.
func (t *Turn) parsedCalls() int {
	n := 0
	for _, c := range t.Parsed.Calls {
		if c.Error == "" || beyondBudget(c) {
			n++
		}
	}
	return n
}

// countCalls counts the calls that a turn makes and those that could be parsed. An action counts as a call. It counts
// as parsed if the response is well formed. A summary makes no call.
func (e *Episode) countCalls(turn int) (calls, parsed int) {
	t := &e.Turns[turn]
	if !e.spec().Acts || e.IsSummary(turn) {
		return len(t.Parsed.Calls), t.parsedCalls()
	}
	if t.Parsed.WellFormed {
		parsed = 1
	}
	return 1, parsed
}

// rounds returns the turns whose calls have results, as prompts are rendered from them.
func (e *Episode) rounds() []protocol.Round {
	rounds := make([]protocol.Round, len(e.Turns))
	for i, t := range e.Turns {
		rounds[i] = protocol.Round{Response: t.Text, Calls: t.Parsed.Calls, Bodies: make([]string, len(t.Results))}
		for j, r := range t.Results {
			rounds[i].Bodies[j] = r.Body
		}
	}
	return rounds
}

// Answer returns the last answer of the episode, that of the last response with a closed answer.
func (e *Episode) Answer() (answer string, has bool) {
	for i := len(e.Turns) - 1; i >= 0; i-- {
		if p := e.Turns[i].Parsed; p.AnswerTags > 0 {
			return p.Answer, p.HasAnswer
		}
	}
	return "", false
}

// Text returns the text of the whole episode, for graders. It has no summaries, which are no part of a solution.
func (e *Episode) Text() string {
	var parts []string
	for k, t := range e.Turns {
		if parts = append(parts, t.Observation); !e.IsSummary(k) {
			parts = append(parts, t.Text)
		}
	}
	return e.spec().Opening + strings.Join(parts, "")
}

// Counts are an episode's totals.
type Counts struct {
	ToolCalls      int // calls with a verdict, and actions
	ToolErrors     int // calls that failed or could not run, and invalid actions
	AnswerTags     int
	ResponseTokens int
}

// Counts sums over the turns.
func (e *Episode) Counts() Counts {
	var c Counts
	for _, t := range e.Turns {
		c.AnswerTags += t.Parsed.AnswerTags
		c.ResponseTokens += len(t.Response)
		for _, r := range t.Results {
			if r.Excluded == "" {
				c.ToolCalls++
			}
			if r.Failed() {
				c.ToolErrors++
			}
		}
		if tr := t.Transition; tr != nil && tr.Excluded == "" {
			c.ToolCalls++
			if !tr.Valid {
				c.ToolErrors++
			}
		}
	}
	return c
}
