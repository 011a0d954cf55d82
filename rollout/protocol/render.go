package protocol

import (
	"strings"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/sandbox"
)

// Side says which part of a text is kept when the text is too long.
type Side string

// The sides. The zero value means SideMiddle.
const (
	SideLeft   Side = "left"   // keep the beginning
	SideRight  Side = "right"  // keep the end
	SideMiddle Side = "middle" // keep both ends and cut out the middle
)

// Limit bounds the tool's own text in one body: the program's output, its traceback, its value, or the message of a
// call that cannot run. The text around it and the mark of the gap do not count. Bytes 0 means no limit.
type Limit struct {
	Bytes int
	Side  Side
}

// render renders the body that answers one call. result is nil if and only if the call could not run.
func (l Limit) render(call env.ToolCall, result *Result) string {
	if fault, ok := l.fault(call, result); ok {
		return fault
	}
	stdout, stderr := l.share(clean(result.Output), clean(result.Errors))
	body := statusSuccess
	if result.Failed {
		body = statusFailure + result.Reason
	}
	if stdout != "" {
		body += labelStdout + stdout
	}
	if stderr != "" {
		body += labelStderr + stderr
	}
	return body
}

// reasonTimeout is the released code's word for both kinds of timeout.
const reasonTimeout = "worker_timeout"

var reasons = []string{
	reasonTimeout, string(sandbox.StatusOutOfMemory), string(sandbox.StatusOutputLimit), string(sandbox.StatusKilled),
}

// reason is empty if the traceback already gives the reason.
func reason(s sandbox.Status) string {
	switch s {
	case sandbox.StatusRuntime, sandbox.StatusSyntax:
		return ""
	case sandbox.StatusTimeoutCPU, sandbox.StatusTimeoutWall:
		return reasonTimeout
	}
	return string(s)
}

// clean removes the line ends at the end and makes the text valid UTF-8, which the record requires.
func clean(s string) string {
	return strings.TrimRight(strings.ToValidUTF8(s, "\uFFFD"), "\r\n")
}

// share cuts two texts so that together they fit the limit. Each text may use half of the limit, and the part that the
// other leaves unused.
func (l Limit) share(a, b string) (string, string) {
	if l.Bytes <= 0 || len(a)+len(b) <= l.Bytes {
		return a, b
	}
	forA := min(len(a), max(l.Bytes/2, l.Bytes-len(b)))
	return l.cut(a, forA), l.cut(b, l.Bytes-forA)
}

// cut keeps at most limit bytes of s without splitting a character, and marks the gap.
func (l Limit) cut(s string, limit int) string {
	if l.Bytes <= 0 || len(s) <= limit {
		return s
	}
	switch l.Side {
	case SideLeft:
		return s[:boundary(s, limit, -1)] + truncated
	case SideRight:
		return truncated + s[boundary(s, len(s)-limit, +1):]
	}
	head := (limit + 1) / 2
	return s[:boundary(s, head, -1)] + truncated + s[boundary(s, len(s)-(limit-head), +1):]
}

// boundary moves i by step until a character starts there.
func boundary(s string, i, step int) int {
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i += step
	}
	return i
}

// Call writes one block that runs code, in the form that the policy should write.
func Call(code, stdin string) string {
	return callOpen + escape(code) + callInput + escape(stdin) + callClose
}

// BrokenCall writes a block whose JSON ends in the middle of the code.
func BrokenCall(code string) string { return callOpen + escape(code) + callTagClose }

// CallResponse returns the whole response that makes one call.
func CallResponse(code string) string { return reasonClose + Call(code, "") + EndOfTurn }

// BrokenResponse returns a response whose only block does not decode.
func BrokenResponse(code string) string { return reasonClose + BrokenCall(code) + EndOfTurn }

// AnswerResponse returns a response that answers and makes no call.
func AnswerResponse(answer string) string {
	return reasonClose + answerTag + boxOpen + answer + "}" + answerTagClose + EndOfTurn
}

// escape returns s as the inside of a JSON string.
func escape(s string) string {
	text := quoted(s)
	return text[1 : len(text)-1]
}
