package openai

import (
	"encoding/json"
	"strings"
)

// Pieces of the chat template.
const (
	open     = "<|im_start|>"
	end      = "<|im_end|>"
	generate = open + Assistant + "\n" // the text before a response

	callOpen      = "<tool_call>\n"
	callClose     = "\n</tool_call>"
	responseOpen  = "\n<tool_response>\n"
	responseClose = "\n</tool_response>"
)

// Turn is one response with the messages before it.
type Turn struct {
	Context  []Message
	Response Message
}

// Turns splits a conversation after each assistant message. rest holds the messages after the last one.
func Turns(messages []Message) (turns []Turn, rest []Message) {
	from := 0
	for i, m := range messages {
		if m.Role == Assistant {
			turns = append(turns, Turn{messages[from:i], m})
			from = i + 1
		}
	}
	return turns, messages[from:]
}

// render writes messages that are not the assistant's. Consecutive tool messages form one turn of the user, as in the
// template.
func render(messages []Message) string {
	var b strings.Builder
	for i, m := range messages {
		if !m.answers() {
			b.WriteString(open + m.Role + "\n" + m.Text + end + "\n")
			continue
		}
		if i == 0 || !messages[i-1].answers() {
			b.WriteString(open + User)
		}
		b.WriteString(responseOpen + m.Text + responseClose)
		if i+1 == len(messages) || !messages[i+1].answers() {
			b.WriteString(end + "\n")
		}
	}
	return b.String()
}

func (m Message) answers() bool { return m.Role == Tool || m.Role == Function }

// response writes an assistant message: the text after the generation prompt, up to and including the end tag.
func (m Message) response() string {
	parts := []string{}
	if m.Text != "" {
		parts = append(parts, m.Text)
	}
	for _, c := range m.Calls {
		parts = append(parts, callOpen+`{"name": `+quoted(c.Name)+`, "arguments": `+c.arguments()+`}`+callClose)
	}
	return strings.Join(parts, "\n") + end
}

// arguments returns the call's arguments if they are JSON, else the text as a JSON string.
func (c Call) arguments() string {
	if json.Valid([]byte(c.Arguments)) {
		return c.Arguments
	}
	return quoted(c.Arguments)
}

func quoted(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}
