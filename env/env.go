// Package env defines environments and their tasks: the contract (Environment), the declaration of an environment
// (Declaration), and the types that other packages exchange.
//
// Glossary. A *task* is one instance of an environment's problem. A *question* is a task that a policy answers,
// possibly after tool calls; it includes its gold answer. In an *interactive* environment, each response of a policy
// holds an *action*, and the environment shows an *observation* before the next response. A *response* is what the
// policy wrote in one turn. A protocol (package rollout/protocol) reads the *tool calls*, the *action* and the *answer*
// from the response. A *teacher* is a script that writes demonstrations. An *expert* is an environment that solves its
// own tasks.
//
// An environment is one package with one Declaration, which package env/environments lists. The recipe fields, their
// schema, the reference pages, `ropewalk methods` and the stages of a run are derived from the declaration:
//
//	Declaration ─ Open(Options) → Environment ─ Task(Draw) → Task ─ Reset → State ─ Step … → Transition
package env

import "encoding/json"

// ToolCall is one parsed call of a response, or the reason why the call could not be parsed.
type ToolCall struct {
	Name      string
	Arguments string // raw JSON of the arguments, or of the whole block if the block does not parse
	Code      string
	Stdin     string
	// Error is empty for a call that can run. Otherwise it is the kind of failure, and Message describes it to the
	// policy.
	Error   CallError
	Message string
}

// Function is what a policy reads of something that it can call.
type Function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON schema of the arguments: an object
}

// CallError is the reason why a call cannot run.
type CallError string

// Values of CallError.
const (
	CallDecodeError CallError = "decode_error" // not the JSON object that the protocol requires
	CallUnknownTool CallError = "unknown_tool"
	CallBadArgument CallError = "bad_arguments"
	CallOverBudget  CallError = "over_budget" // the episode or the response has run as many calls as it may
)
