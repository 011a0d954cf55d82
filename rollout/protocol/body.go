package protocol

import "github.com/ropewalk/ropewalk/env"

// noOutput is the body of a call that succeeded and returned nothing.
const noOutput = "(no output)"

// plainBody renders the result of a call as bare text: the output, then the errors, or why there is neither.
func plainBody(l Limit, call env.ToolCall, r *Result, marks []string) string {
	if fault, ok := l.fault(call, r); ok {
		return guard(fault, marks)
	}
	output, errors := l.share(clean(r.Output), clean(r.Errors))
	body := output
	switch {
	case errors != "":
		body = lines(body, errors)
	case r.Failed:
		body = lines(body, prefixTool+r.Reason)
	case body == "":
		body = noOutput
	}
	return guard(body, marks)
}

// fault renders why a call did not run. ok is false if it ran.
func (l Limit) fault(call env.ToolCall, r *Result) (body string, ok bool) {
	switch {
	case call.Error == env.CallDecodeError:
		return prefixDecode + l.cut(call.Message, l.Bytes), true
	case call.Error != "" || r == nil:
		return prefixTool + l.cut(call.Message, l.Bytes), true
	}
	return "", false
}

// lines joins two texts of which the first may be empty.
func lines(first, second string) string {
	if first == "" {
		return second
	}
	return first + "\n" + second
}
