package protocol

import "slices"

// The end tag of a chat turn, and the two names of the tool: the paper's and the released code's.
const (
	EndOfTurn    = "<|im_end|>"
	ToolName     = "execute_python_code_with_standard_io"
	ToolNameCode = "python_code_with_standard_io"
)

// The fixed text around a problem, a call, a tool response and an answer.
const (
	promptOpen = "<|im_start|>user\n"
	promptEnd  = EndOfTurn + "\n<|im_start|>assistant\n" + reasonOpen

	reasonOpen  = "<reason>"
	reasonClose = "</reason>"

	callTag      = "<tool_call>"
	callTagClose = "</tool_call>"
	callOpen     = callTag + `{"name": "` + ToolName + `", "arguments": {"code": "`
	callInput    = `", "input": "`
	callClose    = `"}}` + callTagClose

	answerTag      = "<answer>"
	answerTagClose = "</answer>"
	boxOpen        = `\boxed{`

	turnOpen    = "\n" + promptOpen + "<tool_response>\n"
	turnEnd     = "\n</tool_response>" + promptEnd
	turnBetween = "\n</tool_response>\n<tool_response>\n"

	statusSuccess = "Tool call success"
	statusFailure = "Tool call failure\nreason: "
	labelStdout   = "\nstdout: "
	labelStderr   = "\nstderr: "
	prefixDecode  = "Failed to decode tool call: "
	prefixTool    = "Error when executing tool: "
	truncated     = "...(truncated)..."
)

// pythonText holds text that the tracebacks of short programs repeat. A Python version with other messages only costs
// more tokens.
var pythonText = []string{
	"Traceback (most recent call last):\n  File \"main.py\", line 1, in <module>\n    ",
	"  File \"main.py\", line 1\n    ",
	"\n    ", "    ", "^^^^", "~~~~",
	"\nNameError: name '", "' is not defined",
	"\nSyntaxError: '(' was never closed", "\nSyntaxError: unmatched ')'", "\nSyntaxError: invalid syntax",
	"\nZeroDivisionError: ", "integer division or modulo by zero", "integer modulo by zero", "division by zero",
}

// Added lists the protocol's fixed strings. Each of them is one token.
func (RStar2) Added() []string {
	return slices.Concat([]string{
		EndOfTurn, promptOpen, promptEnd,
		reasonOpen, reasonClose, callTag, callTagClose, answerTag, answerTagClose, boxOpen,
		callOpen, callInput, callClose, callInput + callClose,
		answerTag + boxOpen, "}" + answerTagClose,
		turnOpen, turnEnd, turnBetween,
		turnOpen + statusSuccess, turnOpen + statusSuccess + labelStdout, turnOpen + statusFailure,
		turnOpen + prefixDecode, turnOpen + prefixTool,
		statusSuccess, statusSuccess + labelStdout, statusFailure, labelStdout, labelStderr,
		prefixDecode, prefixTool, truncated,
	}, pythonText, reasons, messages)
}
