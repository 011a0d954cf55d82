// Package env holds environments and their tasks. A *problem* is one task instance with its
// gold answer and level; a *prompt* is the problem rendered for the policy. A *response* is
// what the policy wrote in one turn; the environment reads the *tool calls* and the *answer*
// out of it and renders tool results as the *observation* before the next turn.
package env

// Problem is one task instance.
type Problem struct {
	ID     string // digest of the problem, equal for equal problems
	Level  int    // difficulty; for calc the number of operands
	Text   string // what the policy reads
	Answer string // gold answer
	// Expression is the problem's source where it has one (calc: the Python expression).
	Expression string
}

// ToolCall is one parsed call of a response, or the reason why it could not be parsed.
type ToolCall struct {
	Name      string
	Arguments string // raw JSON of the arguments, or of the whole block when it does not parse
	Code      string
	Stdin     string
	// Error is empty for a call that can run; else the kind of failure, with Message for the policy.
	Error   CallError
	Message string
}

// CallError is the kind of a call that cannot run.
type CallError string

// Kinds of calls that cannot run.
const (
	CallDecodeError CallError = "decode_error" // not the JSON object that the protocol wants
	CallUnknownTool CallError = "unknown_tool"
	CallBadArgument CallError = "bad_arguments"
)
