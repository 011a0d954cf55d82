package protocol

import (
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
)

// RStar2 is rStar2-Agent's protocol of calls of a Python tool (section 2.1 and its release). frames.go holds its fixed
// text, and parse.go its parser. The prompt holds only the problem, because a policy that this program makes learns the
// rest by cloning; RStar2Prompt is for published models.
//
// What the policy's own programs print enters as it is (Spec.RawPrograms), as in the release. Records hold its bytes.
type RStar2 struct{}

var rstar2Marks = tagMarks(append(slices.Clone(wrapping), "tool_response", "think")...)

// Spec describes the protocol.
func (RStar2) Spec() Spec {
	return Spec{
		Name: "rstar2", Doc: "reasoning, JSON calls of a Python tool and a boxed answer, in tags",
		Source:    "rStar2-Agent §2.1 and its released code",
		Form:      "all of its text is in <reason>, <tool_call> and <answer>",
		EndOfTurn: EndOfTurn, Tags: wrapping, Reasoning: "reason", Opening: reasonOpen, Answer: AnswerBoxInTags,
		Tools: true, Marks: rstar2Marks, RawPrograms: true,
	}
}

// Added lists the protocol's fixed strings.
func (RStar2) Added() []string { return Added() }

// Context renders the problem at turn 0 and the results of calls at later turns.
func (RStar2) Context(v View) string {
	if v.Turn > 0 {
		return RenderTurn(v.Last().Bodies)
	}
	return Prompt(guard(v.Task, rstar2Marks))
}

// Parse reads the reasoning, the calls and the answer from one response. The prompt opens the reasoning, and a response
// that never closes it is read whole, as the release reads every response.
func (RStar2) Parse(response string, tools []Tool) Parsed {
	p := parse(response, tools)
	p.WellFormed = Wrapped(response)
	if reasoning, _, ok := strings.Cut(response, reasonClose); ok {
		p.Reasoning = reasoning
	}
	return p
}

// Body renders the body of a tool response.
func (RStar2) Body(l Limit, call env.ToolCall, result *Result) string {
	body := l.render(call, result)
	if result == nil || call.Code != "" || call.Name == ToolName || call.Name == ToolNameCode {
		return body
	}
	return guard(body, rstar2Marks)
}

// Write writes a call or an answer.
func (p RStar2) Write(m env.Move) (string, bool) {
	switch {
	case m.Action != "":
		return "", false
	case m.Tool != "" && m.Broken:
		return written(p, m, m.Thought+reasonClose+callTag+`{"name": `+quoted(m.Tool)+`, "arguments": `+
			cutShort(m.Arguments)+callTagClose+EndOfTurn)
	case m.Tool != "":
		return written(p, m, m.Thought+reasonClose+callTag+`{"name": `+quoted(m.Tool)+`, "arguments": `+m.Arguments+
			`}`+callTagClose+EndOfTurn)
	case m.Broken:
		return written(p, m, m.Thought+BrokenResponse(m.Code))
	case m.IsCall():
		return written(p, m, m.Thought+CallResponse(m.Code))
	}
	return written(p, m, m.Thought+AnswerResponse(m.Answer))
}
