package export

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
)

// message is one message that is made here. Content is null beside calls alone.
type message struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	Name       string     `json:"name,omitempty"`
}

type toolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// messages returns an episode's conversation. What was imported as a conversation comes back as it
// was, every field of every message.
func messages(e analysis.Episode) ([]json.RawMessage, error) {
	if e.Trajectory.Messages == nil {
		return made(e)
	}
	var out []json.RawMessage
	if err := json.Unmarshal([]byte(*e.Trajectory.Messages), &out); err != nil {
		return nil, fmt.Errorf("read messages of trajectory %s: %w", e.Trajectory.TrajectoryID, err)
	}
	return out, nil
}

// made makes the conversation: the prompt is the user's, each response the assistant's, and each
// call's response a tool's. A block that could not be read as a call stays in the content, and what
// answered it is the user's, as the policy saw it.
func made(e analysis.Episode) ([]json.RawMessage, error) {
	all := []message{{Role: "user", Content: &e.Prompt.Problem}}
	for _, t := range e.Turns {
		calls := callsOf(e, t.Turn)
		all = append(all, response(e, t, calls))
		for _, c := range calls {
			all = append(all, answer(c))
		}
	}
	out := make([]json.RawMessage, len(all))
	for i, m := range all {
		var err error
		if out[i], err = encode(m); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func callsOf(e analysis.Episode, turn int32) []schema.ToolCallRow {
	var out []schema.ToolCallRow
	for _, c := range e.Calls {
		if c.Turn == turn {
			out = append(out, c)
		}
	}
	return out
}

// response is a turn's message. Calls that no result was recorded of stay in the content too.
func response(e analysis.Episode, t schema.TurnRow, calls []schema.ToolCallRow) message {
	m := message{Role: "assistant"}
	listed := map[int]bool{}
	for _, c := range calls {
		if c.Name != "" {
			listed[int(c.Call)] = true
			m.ToolCalls = append(m.ToolCalls, toolCall{ID: callID(c), Type: "function", Function: function{c.Name, c.Arguments}})
		}
	}
	content := t.Response
	if e.Trajectory.Source == rollout.SourceRollout {
		content = protocol.Message(t.Response, func(block int) bool { return listed[block] })
	}
	if content != "" || len(m.ToolCalls) == 0 {
		m.Content = &content
	}
	return m
}

func callID(c schema.ToolCallRow) string { return fmt.Sprintf("call_%d_%d", c.Turn, c.Call) }

// answer is what a call got. Rows of recomputed calls hold no response; what they printed is one.
func answer(c schema.ToolCallRow) message {
	body := c.Response
	if body == "" {
		body = strings.TrimRight(c.Stdout+c.Stderr, "\n")
	}
	if c.Name == "" {
		body = protocol.ToolResponse(body)
		return message{Role: "user", Content: &body}
	}
	return message{Role: "tool", Content: &body, ToolCallID: callID(c), Name: c.Name}
}

// encode writes a value as compact JSON in which <, > and & stand for themselves.
func encode(v any) (json.RawMessage, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode JSON: %w", err)
	}
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n")), nil
}
