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
func readMessages(path string, value json.RawMessage) []Message {
	list := readList(path, value)
	out := make([]Message, len(list))
	for i, text := range list {
		o := readObject(fmt.Sprintf("%s[%d]", path, i), text)
		out[i] = o.message()
		out[i].raw = compact(text)
		answer(out[:i], o, i)
	}
	if !slices.ContainsFunc(out, func(m Message) bool { return m.Role == Assistant }) {
		panic(fault(path, "holds no message of the assistant"))
	}
	return out
}

func (o object) message() Message {
	m := Message{Role: o.text("role")}
	if !slices.Contains(roles, m.Role) {
		panic(fault(o.at("role"), "must be one of %s, got %q", strings.Join(roles, ", "), m.Role))
	}
	if m.Text = o.content(); m.Role != Assistant {
		return m
	}
	if m.Text == "" && o.has("refusal") {
		m.Text = o.text("refusal")
	}
	m.Calls = o.calls()
	return m
}

// content reads a text, a list of parts, or nothing.
func (o object) content() string {
	if !o.has("content") {
		return ""
	}
	if o.fields["content"][0] != '[' {
		return o.text("content")
	}
	var text strings.Builder
	for i, p := range readList(o.at("content"), o.fields["content"]) {
		text.WriteString(readObject(fmt.Sprintf("%s[%d]", o.at("content"), i), p).part())
	}
	return text.String()
}

func (o object) part() string {
	kind := o.name("type")
	if kind == "text" || kind == "refusal" {
		return o.text(kind)
	}
	return "[" + kind + "]"
}

// calls reads tool_calls and the older function_call.
func (o object) calls() (out []Call) {
	if o.has("tool_calls") {
		for i, value := range readList(o.at("tool_calls"), o.fields["tool_calls"]) {
			out = append(out, readObject(fmt.Sprintf("%s[%d]", o.at("tool_calls"), i), value).call())
		}
	}
	if o.has("function_call") {
		out = append(out, o.function("function_call"))
	}
	return out
}

func (o object) call() Call {
	id := o.name("id")
	var kind string
	if o.has("type") && (json.Unmarshal(o.fields["type"], &kind) != nil || kind != "function") {
		panic(fault(o.at("type"), "must be function, got %s", shown(o.fields["type"])))
	}
	c := o.function("function")
	c.ID = id
	return c
}

// function reads a field that names a function and its arguments.
func (o object) function(field string) Call {
	o = readObject(o.at(field), o.need(field))
	c := Call{Name: o.name("name"), Answer: -1}
	if raw := o.fields["arguments"]; bytes.HasPrefix(raw, []byte("{")) { // as templates and other programs want them
		c.Arguments = string(raw)
	} else {
		c.Arguments = o.text("arguments")
	}
	return c
}

// answer assigns message i, with the fields o, to the earlier call that it answers. Ids may repeat in a conversation;
// the latest call without an answer is then the one meant.
func answer(earlier []Message, o object, i int) {
	var field string
	role := o.text("role")
	switch role {
	case Tool:
		field = "tool_call_id"
	case Function:
		field = "name"
	default:
		return
	}
	key := o.name(field)
	for _, m := range slices.Backward(earlier) {
		for k := range m.Calls {
			c := &m.Calls[k]
			if c.Answer < 0 && (role == Tool && c.ID == key || role == Function && c.ID == "" && c.Name == key) {
				c.Answer = i
				return
			}
		}
	}
	panic(fault(o.at(field), "%q answers no earlier call that is still open", key))
}
