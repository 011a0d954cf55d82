package rollout

import (
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
)

// Finish says why an episode ended; "" while it goes on.
type Finish string

// The ends of an episode.
const (
	FinishAnswered Finish = "answered"  // no call, and at least one closed answer pair
	FinishNoAction Finish = "no_action" // neither call nor answer
	FinishMaxTurns Finish = "max_turns" // the last turn allowed still called the tool
	FinishLength   Finish = "length"    // a budget of tokens was used up
	FinishExcluded Finish = "excluded"  // the engine or the sandbox broke on it
)

// CallResult is the verdict on one call of a turn, as the record keeps it.
type CallResult struct {
	Status   string // a sandbox status, or the env.CallError of a call that could not run
	ExitCode int32
	Stdout   string
	Stderr   string
	Value    string
	Body     string // the body of the tool response
	// Excluded says why there is no verdict; all else is then empty.
	Excluded string
}

// Failed reports whether the call counts as a tool error.
func (r CallResult) Failed() bool { return r.Excluded == "" && r.Status != string(sandbox.StatusOK) }

// Turn is one finished generation, and the results of its calls once there are some.
type Turn struct {
	Context     []int32 // prompt or observation
	Observation string  // text of the context; "" at turn 0
	Response    []int32
	Text        string // text of the response, made valid UTF-8
	LogProbs    []float32
	Entropies   []float32
	Finish      policy.Finish
	Parsed      protocol.Parsed
	Results     []CallResult // one a call, nil until they are there
	// PolicyVersion is the digest of the checkpoint that wrote the response.
	PolicyVersion string
	// Excluded says why there is no response; the turn is then the episode's last.
	Excluded string
}

// Episode is one trajectory in the making.
type Episode struct {
	Identity
	GroupID      string
	TrajectoryID string
	Problem      env.Problem
	Turns        []Turn
	// Context holds the next turn's context, and Observation its text, while a response is awaited.
	Context     []int32
	Observation string
	Finish      Finish
	Excluded    string // why, where Finish is FinishExcluded

	History int // latest turns that a prefix holds; 0 = all
}

// AwaitsResponse reports whether the policy has to write the next response.
func (e *Episode) AwaitsResponse() bool { return e.Finish == "" && e.Context != nil }

// AwaitsResults reports whether the last response's calls have to be answered.
func (e *Episode) AwaitsResults() bool { return e.Finish == "" && e.Context == nil }

// Prefix is what the policy sees before the next response.
func (e *Episode) Prefix() []int32 { return e.seen(len(e.Turns), e.Context) }

// seen is what the policy sees before its response at a turn with the given context.
func (e *Episode) seen(turn int, context []int32) []int32 {
	tokens := make([]int32, 0, e.Tokens())
	ends := make([]int, turn)
	for k, t := range e.Turns[:turn] {
		tokens = append(append(tokens, t.Context...), t.Response...)
		ends[k] = len(tokens)
	}
	tokens = append(tokens, context...)
	head := len(context)
	if turn > 0 {
		head = len(e.Turns[0].Context)
	}
	return WindowAfter(head, ends, e.History).Tokens(tokens, len(tokens))
}

// Tokens counts every token so far, the next turn's context included.
func (e *Episode) Tokens() int {
	n := len(e.Context)
	for _, t := range e.Turns {
		n += len(t.Context) + len(t.Response)
	}
	return n
}

// Sequence returns the tokens of all turns with their loss mask: 1 where the policy wrote.
func (e *Episode) Sequence() (tokens, mask []int32) {
	for _, t := range e.Turns {
		tokens = append(append(tokens, t.Context...), t.Response...)
		mask = append(mask, t.mask()...)
	}
	return tokens, mask
}

func (t *Turn) mask() []int32 {
	mask := make([]int32, len(t.Context)+len(t.Response))
	for i := len(t.Context); i < len(mask); i++ {
		mask[i] = 1
	}
	return mask
}

// parsedCalls counts the calls that could be read.
func (t *Turn) parsedCalls() int {
	n := 0
	for _, c := range t.Parsed.Calls {
		if c.Error == "" {
			n++
		}
	}
	return n
}

// Answer is the last answer of the episode: the last box of the last answer pair.
func (e *Episode) Answer() (answer string, has bool) {
	for i := len(e.Turns) - 1; i >= 0; i-- {
		if p := e.Turns[i].Parsed; p.AnswerTags > 0 {
			return p.Answer, p.HasAnswer
		}
	}
	return "", false
}

// Text is the whole episode as graders read it.
func (e *Episode) Text() string {
	var parts []string
	for _, t := range e.Turns {
		parts = append(parts, t.Observation, t.Text)
	}
	return protocol.Text(parts...)
}

// Counts are an episode's totals.
type Counts struct {
	ToolCalls      int // calls with a verdict
	ToolErrors     int // those that failed or could not run
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
	}
	return c
}
