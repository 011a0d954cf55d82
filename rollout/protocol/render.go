package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/sandbox"
)

// Side says which part of a text that is too long survives.
type Side string

// The sides; the zero value is SideMiddle.
const (
	SideLeft   Side = "left"   // the beginning survives
	SideRight  Side = "right"  // the end survives
	SideMiddle Side = "middle" // both ends survive, the middle is cut out
)

// Limit bounds the tool's own text in one body: what the program printed, its traceback, its
// value, or the message of a call that cannot run. Neither the frame around it nor the mark of the
// gap counts. A Bytes of 0 does not limit.
type Limit struct {
	Bytes int
	Side  Side
}

// RenderResponse renders the body that answers one call: result is nil exactly when the call
// could not run.
func RenderResponse(call env.ToolCall, result *sandbox.Result) string {
	return Limit{}.RenderResponse(call, result)
}

// RenderResponse is RenderResponse with the tool's text cut to the limit.
func (l Limit) RenderResponse(call env.ToolCall, result *sandbox.Result) string {
	switch {
	case call.Error == env.CallDecodeError:
		return prefixDecode + l.cut(call.Message, l.Bytes)
	case call.Error != "" || result == nil:
		return prefixTool + l.cut(call.Message, l.Bytes)
	}
	stdout, stderr := clean(result.Stdout), clean(result.Stderr)
	if stdout == "" {
		stdout = clean(result.Value)
	}
	stdout, stderr = l.share(stdout, stderr)
	body := statusSuccess
	if result.Status.Failed() {
		body = statusFailure + reason(result.Status)
	}
	if stdout != "" {
		body += labelStdout + stdout
	}
	if stderr != "" {
		body += labelStderr + stderr
	}
	return body
}

// reasonTimeout is the released code's word for either kind of time-out.
const reasonTimeout = "worker_timeout"

var reasons = []string{
	reasonTimeout, string(sandbox.StatusOutOfMemory), string(sandbox.StatusOutputLimit), string(sandbox.StatusKilled),
}

// reason is empty when the traceback says it all.
func reason(s sandbox.Status) string {
	switch s {
	case sandbox.StatusRuntime, sandbox.StatusSyntax:
		return ""
	case sandbox.StatusTimeoutCPU, sandbox.StatusTimeoutWall:
		return reasonTimeout
	}
	return string(s)
}

// clean drops the line ends at the end and makes the text valid UTF-8, as the record wants it.
func clean(s string) string {
	return strings.TrimRight(strings.ToValidUTF8(s, "\uFFFD"), "\r\n")
}

// share cuts two texts to the limit together: each may use half, and what the other leaves.
func (l Limit) share(a, b string) (string, string) {
	if l.Bytes <= 0 || len(a)+len(b) <= l.Bytes {
		return a, b
	}
	forA := min(len(a), max(l.Bytes/2, l.Bytes-len(b)))
	return l.cut(a, forA), l.cut(b, l.Bytes-forA)
}

// cut keeps limit bytes of s, less where a character would be split, and marks the gap.
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

// Call writes one block that runs code, as the policy is meant to write it.
func Call(code, stdin string) string {
	return callOpen + escape(code) + callInput + escape(stdin) + callClose
}

// BrokenCall writes a block whose JSON ends in the middle of the code.
func BrokenCall(code string) string { return callOpen + escape(code) + callTagClose }

// CallResponse is the whole response that makes one call, BrokenResponse one that fails to, and
// AnswerResponse the one that answers.
func CallResponse(code string) string { return reasonClose + Call(code, "") + EndOfTurn }

// BrokenResponse is a response whose only block does not decode.
func BrokenResponse(code string) string { return reasonClose + BrokenCall(code) + EndOfTurn }

// AnswerResponse is a response that answers and calls nothing.
func AnswerResponse(answer string) string {
	return reasonClose + answerTag + boxOpen + answer + "}" + answerTagClose + EndOfTurn
}

// escape is s as the inside of a JSON string.
func escape(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(fmt.Sprintf("encode a string: %v", err)) // strings always encode
	}
	quoted := strings.TrimSuffix(b.String(), "\n")
	return quoted[1 : len(quoted)-1]
}

// Text joins what a trajectory's turns show into the text that graders read: the first
// generation prompt's <reason>, then responses and observations in turn.
func Text(parts ...string) string { return reasonOpen + strings.Join(parts, "") }
