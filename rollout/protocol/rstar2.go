package protocol

import (
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rl/reward"
)

// RStar2 is rStar2-Agent's protocol of calls of a Python tool (section 2.1 and its release). frames.go holds its fixed
// text, and parse.go what it shares with other parsers. The prompt holds only the problem, because a policy that this
// program makes learns the rest by cloning; RStar2Prompt is for published models.
//
// What the policy's own programs print enters as it is (Spec.RawPrograms), as in the release. Records hold its bytes.
type RStar2 struct{}

// wrapping holds the names of the tags that must enclose a response. The <reason> of the generation prompt counts as
// part of the response.
var wrapping = []string{"reason", "tool_call", "answer"}

var rstar2Marks = tagMarks(append(slices.Clone(wrapping), "tool_response", "think")...)

// Spec describes the protocol.
func (RStar2) Spec() Spec {
	return Spec{
		Name: "rstar2", Doc: "reasoning, JSON calls of a Python tool and a boxed answer, in tags",
		Source:    "rStar2-Agent §2.1 and its released code",
		Form:      "all of its text is in <reason>, <tool_call> and <answer>",
		EndOfTurn: EndOfTurn, Tags: wrapping, Reasoning: "reason", Opening: reasonOpen, Answer: AnswerBoxInTags,
		Tools: true, Summaries: true, Marks: rstar2Marks, RawPrograms: true,
	}
}

// Context renders the problem at turn 0 and the results of calls at later turns.
func (RStar2) Context(v View) string {
	if v.Turn > 0 {
		return turnOpen + strings.Join(v.Last().Bodies, turnBetween) + turnEnd
	}
	return promptOpen + guard(v.Task, rstar2Marks) + promptEnd
}

// Parse reads the reasoning, the calls and the answer from one response. The prompt opens the reasoning, and a response
// that never closes it is read whole, as the release reads every response.
func (RStar2) Parse(response string, tools []Tool) Parsed {
	reasoning, _, reasons := strings.Cut(response, reasonClose)
	text, ended := strings.CutSuffix(response, EndOfTurn)
	p := Parsed{WellFormed: ended && reward.Wrapped(reasonOpen+text, wrapping...)}
	if reasons {
		p.Reasoning = reasoning
	}
	spoken := RStar2{}.Spec().Spoken(response)
	blocks, outside := between(spoken, callTag, callTagClose)
	for _, block := range blocks {
		p.Calls = append(p.Calls, parseCall(block, func(name string) (Tool, bool) { return rstar2Tool(tools, name) }))
	}
	p.OpenCalls = begun(outside, callTag)
	pairs, _ := between(spoken, answerTag, answerTagClose)
	if p.AnswerTags = len(pairs); len(pairs) > 0 {
		p.Answer, p.HasAnswer = reward.LastBoxed(pairs[len(pairs)-1])
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
