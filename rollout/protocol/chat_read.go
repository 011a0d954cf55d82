package protocol

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/rollout/toolcall"
)

// Parse reads calls and the answer, which counts only outside calls and reasoning.
func (c Chat) Parse(response string, tools []Tool) Parsed {
	text, ended := c.cut(response)
	tools = orPython(tools)
	read := c.Form().Read(text, formTools(tools), c.parts().opening != "", ended)
	got := Parsed{Reasoning: read.Reasoning, Message: messageOf(read)}
	for _, call := range read.Calls {
		got.Calls = append(got.Calls, bindCall(call, tools))
	}
	if read.Open {
		got.OpenCalls = 1
	}
	calls := len(got.Calls) > 0 || read.Open
	if before := read.Content; !read.Reasons {
		if calls {
			before = read.Before
		}
		got.Reasoning, _, _ = strings.Cut(before, boxOpen)
	}
	if got.AnswerTags = boxes(read.Content); calls {
		got.Answer, got.HasAnswer = reward.LastBoxed(read.Content)
		got.WellFormed = ended && !read.Open && strings.TrimSpace(read.After) == "" &&
			!strings.Contains(read.Content, c.Form().Marks[0])
		return got
	}
	if got.HasAnswer = true; got.AnswerTags == 0 {
		got.Answer, got.AnswerTags = strings.TrimSpace(read.Content), 1
		got.HasAnswer = got.Answer != ""
	} else {
		got.Answer, got.HasAnswer = reward.LastBoxed(read.Content)
	}
	if !ended {
		got.AnswerTags = boxes(read.Content)
		got.HasAnswer = got.HasAnswer && got.AnswerTags > 0
	}
	got.WellFormed = ended && got.HasAnswer
	return got
}

// messageOf returns the message that the template sees of a response; nil if the response is cut inside a part of it.
func messageOf(read toolcall.Response) *AssistantMessage {
	if read.Open || read.Thinking {
		return nil
	}
	m := &AssistantMessage{Content: strings.TrimSpace(read.Content)}
	if read.Reasons {
		m.Reasoning = new(strings.TrimSpace(read.Reasoning))
	}
	return m
}

// formTools returns tools as forms want them.
func formTools(tools []Tool) []toolcall.Tool {
	out := make([]toolcall.Tool, len(tools))
	for i, t := range tools {
		out[i] = toolcall.Tool{Name: t.Name, Parameters: t.Parameters}
	}
	return out
}

// bindCall makes the call of a tool from what a response holds.
func bindCall(call toolcall.Call, tools []Tool) env.ToolCall {
	t, known := find(tools, call.Name)
	switch {
	case call.Fault != "" && known && json.Valid([]byte(call.Arguments)):
		return refuse(call.Arguments, call.Name, env.CallBadArgument, call.Fault)
	case call.Fault != "":
		return refuse(call.Arguments, call.Name, env.CallDecodeError, call.Fault)
	case !known:
		return refuse(call.Arguments, call.Name, env.CallUnknownTool, messageUnknown+fmt.Sprintf("%q", call.Name))
	}
	out := bind(t, call.Name, json.RawMessage(call.Arguments))
	out.Code = unfence(out.Code)
	return out
}

// Body renders the result of a call.
func (c Chat) Body(l Limit, call env.ToolCall, r *Result) string {
	return plainBody(l, call, r, c.parts().marks)
}

// Write writes a call or an answer.
func (c Chat) Write(m env.Move) (string, bool) {
	p := c.parts()
	if m.Action != "" {
		return "", false
	}
	thought := m.Thought
	if p.opening != "" {
		_, closing := c.Form().ThinkTags()
		thought = m.Thought + closing
	}
	if !m.IsCall() {
		return written(c, m, thought+boxOpen+m.Answer+"}"+p.end)
	}
	name, args := arguments(m)
	if m.Broken {
		args = cutShort(args)
	}
	if !json.Valid([]byte(args)) && !m.Broken {
		return "", false
	}
	return written(c, m, thought+c.Form().Write(name, args)+p.end)
}
