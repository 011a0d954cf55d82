package protocol

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
)

// Protocol is a prompt format: it renders what a policy reads and parses what a policy writes.
//
// A protocol is a pure function of its arguments and safe for concurrent use. No response makes it fail: Parse also
// reports the parts that cannot be parsed. Text from outside (a task, a tool, an environment) never contains one of
// Spec.Marks after it was rendered, so it can be taken for neither the protocol's tags nor its special tokens.
// protocoltest.Run checks all of this.
//
// tools are the tools that the episode may call. nil means Python alone; an empty list means none.
type Protocol interface {
	// Spec describes the protocol to the rest of the program. It always returns the same value.
	Spec() Spec
	// Added lists the protocol's fixed strings. Each is one token of a tokenizer that this program makes. The last
	// token of a response that Write returns is a stop.
	Added() []string
	// Context renders the text before the response of a turn. At turn 0 this is the whole prompt. Later it is what the
	// policy reads after its last response, or another whole prompt if Spec.Whole is set. The text ends where the
	// response begins.
	Context(v View) string
	// Parse parses a response, including the string at which it stopped, if it did. Calls and answers inside reasoning
	// are drafts, which it leaves out.
	Parse(response string, tools []Tool) Parsed
	// Body renders the result of a call for the policy. result is nil if and only if the call could not run. The body
	// is never empty. Only protocols with tools use Body.
	Body(l Limit, call env.ToolCall, result *Result) string
	// Write renders the response that makes a scripted move, such that Parse finds the move in it. ok is false if the
	// protocol has no such move, or cannot express its text.
	Write(m env.Move) (response string, ok bool)
}

// Renderer is a protocol whose contexts come from a model's own template, which may refuse a conversation. The loop
// calls Render instead of Context.
type Renderer interface {
	// Render is Context with the error of the template.
	Render(v View) (string, error)
}

// Spec describes a protocol.
type Spec struct {
	Name   string // name in recipes
	Doc    string // one line, without a full stop
	Source string // paper or release
	// Form says when a response is well formed (Parsed.WellFormed), as a clause after "if".
	Form string
	// EndOfTurn ends a response and the policy's turn of the chat; it is one token.
	EndOfTurn string
	// Stops are further strings at which a response ends. A response includes its stop, and the turn of the chat
	// continues after it: the next context begins in the middle of the turn. Each is one token.
	Stops []string
	// Tags are the tags that a response consists of, without brackets, in order. Only a protocol without tools and
	// actions may have none.
	Tags []string
	// Marks are the strings that rendered text from outside never contains. Each is ASCII without spaces and has at
	// least two characters.
	Marks []string
	// RawPrograms means that what the policy's own programs print, and what says why a call of its cannot run, enters
	// as it is, marks included.
	RawPrograms bool
	// Reasoning is the protocol's own tag for reasoning, without brackets; "" if it has none but <think>.
	Reasoning string
	// Opening is the beginning of each response that the generation prompt already contains. Graders read the text with
	// it.
	Opening string
	// Answer says where a final answer is.
	Answer AnswerForm
	// Acts means that each response holds an action of an interactive environment.
	Acts bool
	// Tools means that a response may call tools. A protocol without tools and actions has one turn, which holds the
	// final answer.
	Tools bool
	// Summaries means that the policy can be asked for a summary of its episode (AskSummary). The loop asks after a
	// number of turns. Later prompts hold the summary in place of these turns.
	Summaries bool
	// Whole means that each turn's context is a whole prompt, so that a turn can be read alone. The prompt describes
	// earlier turns as far as the policy may know them. Otherwise a context continues after the previous response.
	Whole bool
}

// AnswerForm says where a response holds its final answer.
type AnswerForm string

// The forms of answers. A protocol of actions has none of them.
const (
	AnswerBoxInTags AnswerForm = "box in tags" // in the last box of the last answer pair
	AnswerBox       AnswerForm = "box"         // in the last box; there are no answer tags
	AnswerInTags    AnswerForm = "tags"        // the text of the last answer pair
	AnswerText      AnswerForm = "text"        // in the last box; without one, all of the last response
	AnswerProgram   AnswerForm = "program"     // the last closed python block; tests decide whether it is right
)

// Ends reports whether a response ends at a stop: the end of its turn, or one of Stops.
func (s Spec) Ends(response string) bool {
	return strings.HasSuffix(response, s.EndOfTurn) ||
		slices.ContainsFunc(s.Stops, func(stop string) bool { return strings.HasSuffix(response, stop) })
}

// View holds what a context is rendered from.
type View struct {
	Instruction string // instruction of the environment
	Task        string // the task's own text
	Tools       []Tool
	Turn        int
	// Rounds are the earlier turns of an episode with tools, all of them, the oldest first. The policy's last response
	// and the results of its calls are the last of them.
	Rounds []Round
	// Observation and Admissible are what an interactive environment shows now. Admissible is nil if the environment
	// cannot list the actions that it accepts.
	Observation string
	Admissible  []string
	// Past holds the latest turns of an interactive episode that a prompt may describe, the oldest first.
	Past []Exchange
	// Summary is the policy's latest summary of an interactive episode (AskSummary), or "". Turn counts no summaries.
	Summary string
	// Summarize means that a whole prompt asks for a summary in place of an action.
	Summarize bool
}

// Last returns the last round, or the zero round at turn 0.
func (v View) Last() Round {
	if len(v.Rounds) == 0 {
		return Round{}
	}
	return v.Rounds[len(v.Rounds)-1]
}

// Round is a response and the answers to its calls.
type Round struct {
	Response string         // as the policy wrote it
	Calls    []env.ToolCall // as Parse found them
	Bodies   []string       // the rendered results of the calls, in order
}

// Exchange is an observation and the action that followed it.
type Exchange struct{ Observation, Action string }

// Parsed is the content of a response: its calls, its action and its answer.
type Parsed struct {
	Reasoning string
	Calls     []env.ToolCall // one per block, including calls that cannot run
	// OpenCalls counts the calls that were begun and not closed, and that are not among Calls.
	OpenCalls int
	// Action is the action of an acting response, even if the response is not well formed.
	Action string
	// Answer is the final answer, if HasAnswer; Spec.Answer says where it is.
	Answer    string
	HasAnswer bool
	// AnswerTags counts the closed answers: answer pairs, or boxes where a protocol has no answer tags.
	AnswerTags int
	// WellFormed means that the response ends at a stop and has the protocol's form (Spec.Form).
	WellFormed bool
	// Message is the response as a message of a chat; nil if messages of the protocol list no calls, or if the response
	// is cut inside its reasoning or a call.
	Message *AssistantMessage
}

// AssistantMessage is a response without its calls, which a message of a chat lists separately.
type AssistantMessage struct {
	Content   string
	Reasoning *string // nil if it has none
}

// All lists the protocols.
var All = []Protocol{
	RStar2{},
	RStar2Prompt{},
	ThinkAction{},
	Hermes{},
	TIR{},
	Search,
	AEPO,
	PRS,
	Boxed{},
	Program{},
	Chat{},
}

// Named returns the protocol with that name.
func Named(name string) (Protocol, error) {
	i := slices.IndexFunc(All, func(p Protocol) bool { return p.Spec().Name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no protocol %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return All[i], nil
}

// Names lists the names of the protocols.
func Names() []string {
	out := make([]string, len(All))
	for i, p := range All {
		out[i] = p.Spec().Name
	}
	return out
}
