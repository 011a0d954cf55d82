package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Roles of messages. Function is the older name for Tool.
const (
	System    = "system"
	Developer = "developer"
	User      = "user"
	Assistant = "assistant"
	Tool      = "tool"
	Function  = "function"
)

var roles = []string{System, Developer, User, Assistant, Tool, Function}

// Message is one message in the form that the rows need.
type Message struct {
	Role  string
	Text  string // text of the content; a part of another kind appears as its kind in brackets
	Calls []Call // calls of an assistant message

	raw json.RawMessage // the original message, compact
}

// Call is one tool call.
type Call struct {
	ID        string // "" for a function_call
	Name      string
	Arguments string // JSON, as the model wrote it
	// Answer is the index of the message that answers the call, or −1 if there is none.
	Answer int
}

// readMessages reads a list of messages and finds the answer of each call.
func readMessages(value json.RawMessage) ([]Message, error) {
	list, err := readList(value)
	if err != nil {
		return nil, err
	}
	out := make([]Message, len(list))
	answered := false
	for i, text := range list {
		at := fmt.Sprintf("[%d]", i)
		o, err := readObject(text)
		if err != nil {
			return nil, within(at, err)
		}
		if out[i], err = o.message(); err != nil {
			return nil, within(at, err)
		}
		out[i].raw = compact(text)
		if err := answer(out[:i], o, i); err != nil {
			return nil, within(at, err)
		}
		answered = answered || out[i].Role == Assistant
	}
	if !answered {
		return nil, fault("", "holds no message of the assistant")
	}
	return out, nil
}

func (o object) message() (Message, error) {
	m := Message{}
	var err error
	if m.Role, err = o.text("role"); err != nil {
		return m, err
	}
	if !slices.Contains(roles, m.Role) {
		return m, fault("role", "must be one of %s, got %q", strings.Join(roles, ", "), m.Role)
	}
	if m.Text, err = o.content(); err != nil {
		return m, err
	}
	if m.Role != Assistant {
		return m, nil
	}
	if m.Text == "" && o.has("refusal") {
		if m.Text, err = o.text("refusal"); err != nil {
			return m, err
		}
	}
	m.Calls, err = o.calls()
	return m, err
}

// content reads a text, a list of parts, or nothing.
func (o object) content() (string, error) {
	if !o.has("content") {
		return "", nil
	}
	if o["content"][0] != '[' {
		return o.text("content")
	}
	parts, err := readList(o["content"])
	if err != nil {
		return "", within("content", err)
	}
	var text strings.Builder
	for i, p := range parts {
		s, err := part(p)
		if err != nil {
			return "", within(fmt.Sprintf("content[%d]", i), err)
		}
		text.WriteString(s)
	}
	return text.String(), nil
}

func part(value json.RawMessage) (string, error) {
	o, err := readObject(value)
	if err != nil {
		return "", err
	}
	kind, err := o.name("type")
	if err != nil {
		return "", err
	}
	if kind == "text" || kind == "refusal" {
		return o.text(kind)
	}
	return "[" + kind + "]", nil
}

// calls reads tool_calls and the older function_call.
func (o object) calls() ([]Call, error) {
	var out []Call
	if o.has("tool_calls") {
		list, err := readList(o["tool_calls"])
		if err != nil {
			return nil, within("tool_calls", err)
		}
		for i, value := range list {
			c, err := readCall(value)
			if err != nil {
				return nil, within(fmt.Sprintf("tool_calls[%d]", i), err)
			}
			out = append(out, c)
		}
	}
	if o.has("function_call") {
		c, err := readFunction(o["function_call"])
		if err != nil {
			return nil, within("function_call", err)
		}
		out = append(out, c)
	}
	return out, nil
}

func readCall(value json.RawMessage) (Call, error) {
	o, err := readObject(value)
	if err != nil {
		return Call{}, err
	}
	id, err := o.name("id")
	if err != nil {
		return Call{}, err
	}
	if kind, err := o.text("type"); o.has("type") && (err != nil || kind != "function") {
		return Call{}, fault("type", "must be function, got %s", shown(o["type"]))
	}
	if !o.has("function") {
		return Call{}, fault("function", "is missing")
	}
	c, err := readFunction(o["function"])
	c.ID = id
	return c, within("function", err)
}

func readFunction(value json.RawMessage) (Call, error) {
	o, err := readObject(value)
	if err != nil {
		return Call{}, err
	}
	c := Call{Answer: -1}
	if c.Name, err = o.name("name"); err != nil {
		return c, err
	}
	if raw := o["arguments"]; bytes.HasPrefix(raw, []byte("{")) { // as templates and other programs want them
		c.Arguments = string(raw)
		return c, nil
	}
	c.Arguments, err = o.text("arguments")
	return c, err
}

// answer assigns message i, with the fields o, to the earlier call that it answers. Ids may repeat in a conversation;
// the latest call without an answer is then the one meant.
func answer(earlier []Message, o object, i int) error {
	var field string
	role, _ := o.text("role")
	switch role {
	case Tool:
		field = "tool_call_id"
	case Function:
		field = "name"
	default:
		return nil
	}
	key, err := o.name(field)
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(earlier) {
		for k := range m.Calls {
			c := &m.Calls[k]
			if c.Answer < 0 && (role == Tool && c.ID == key || role == Function && c.ID == "" && c.Name == key) {
				c.Answer = i
				return nil
			}
		}
	}
	return fault(field, "%q answers no earlier call that is still open", key)
}
