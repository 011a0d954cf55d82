package export

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
)

// message is one message that this package builds. Content is null in a message that has only calls.
type message struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	Reasoning  *string    `json:"reasoning_content,omitempty"`
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

// messages returns an episode's conversation. An imported conversation is returned unchanged, with every field of every
// message. opening is what the prompts have written of each response (protocol.Spec.Opening).
func messages(e analysis.Episode, opening string) ([]json.RawMessage, error) {
	if e.Trajectory.Messages == nil {
		return made(e, opening)
	}
	var out []json.RawMessage
	if err := json.Unmarshal([]byte(*e.Trajectory.Messages), &out); err != nil {
		return nil, fmt.Errorf("read messages of trajectory %s: %w", e.Trajectory.TrajectoryID, err)
	}
	return out, nil
}

// made builds the conversation: the prompt is a user message, each response an assistant message, and each call's
// answer a tool message. A block that could not be parsed as a call stays in the content, and its answer is a user
// message, as the policy saw it. So does every call of a protocol that writes calls in tags or fences of its own. A
// turn of protocol chat has the content and the reasoning that the record holds.
func made(e analysis.Episode, opening string) ([]json.RawMessage, error) {
	all := []message{{Role: "user", Content: &e.Prompt.Problem}}
	for _, t := range e.Turns {
		if t.IsSummary() {
			all = append(all, summary(t)...)
			continue
		}
		calls := e.CallsOf(t.Turn)
		if inContent(e, t, opening) {
			all = append(all, said(t, opening, calls)...)
			continue
		}
		all = append(all, response(e, t, opening, calls))
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

// summary returns the messages of a turn that asked the policy for a summary. What follows is another turn, so the last
// message asks for it.
func summary(t schema.TurnRow) []message {
	ask, content, next := protocol.SummaryRequest, protocol.Message("", t.Response, func(int) bool { return false }),
		protocol.SummaryContinue
	return []message{{Role: "user", Content: &ask}, {Role: "assistant", Content: &content},
		{Role: "user", Content: &next}}
}

// inContent reports whether the calls of a sampled turn are no <tool_call> blocks, and so stay in its content.
func inContent(e analysis.Episode, t schema.TurnRow, opening string) bool {
	return e.Trajectory.Source == rollout.SourceRollout && opening == "" && t.ToolCalls > 0 && t.Content == nil &&
		protocol.Blocks(t.Response) != int(t.ToolCalls)
}

// said returns the messages of a turn whose calls stay in its content.
func said(t schema.TurnRow, opening string, calls []schema.ToolCallRow) []message {
	content := protocol.Message(opening, t.Response, func(int) bool { return false })
	all := []message{{Role: "assistant", Content: &content}}
	for _, c := range calls {
		body := c.Response
		all = append(all, message{Role: "user", Content: &body})
	}
	return all
}

// response returns a turn's message. Calls without a recorded result also stay in the content.
func response(e analysis.Episode, t schema.TurnRow, opening string, calls []schema.ToolCallRow) message {
	m := message{Role: "assistant"}
	listed := map[int]bool{}
	var unread []string // calls that could not be read
	for _, c := range calls {
		if c.Name == "" {
			unread = append(unread, c.Arguments)
		} else {
			listed[int(c.Call)] = true
			m.ToolCalls = append(m.ToolCalls, toolCall{ID: callID(c), Type: "function",
				Function: function{c.Name, c.Arguments}})
		}
	}
	content := t.Response
	switch {
	case t.Content != nil && len(calls) == int(t.ToolCalls):
		content = strings.TrimPrefix(strings.Join(append([]string{*t.Content}, unread...), "\n"), "\n")
		m.Reasoning = t.Reasoning
	case e.Trajectory.Source == rollout.SourceRollout:
		content = protocol.Message(opening, t.Response, func(block int) bool { return listed[block] })
	}
	if content != "" || len(m.ToolCalls) == 0 {
		m.Content = &content
	}
	return m
}

func callID(c schema.ToolCallRow) string { return fmt.Sprintf("call_%d_%d", c.Turn, c.Call) }

// answer returns a call's answer. Rows of recomputed calls have no response; their output is the answer.
func answer(c schema.ToolCallRow) message {
	body := cmp.Or(c.Response, strings.TrimRight(c.Stdout+c.Stderr, "\n"))
	if c.Name == "" {
		body = protocol.ToolResponse(body)
		return message{Role: "user", Content: &body}
	}
	return message{Role: "tool", Content: &body, ToolCallID: callID(c), Name: c.Name}
}

// encode writes a value as compact JSON without escaping <, > and &.
func encode(v any) (json.RawMessage, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode JSON: %w", err)
	}
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n")), nil
}
