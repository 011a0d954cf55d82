package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/jinja"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// chat renders conversations with a model's own chat template.
type chat struct {
	marks []string // that a message of others must not hold
	protocol.Chat
}

// newChat prepares a model's template. A model that was made here has the template of its protocol chat.
func newChat(m *Model) (*chat, error) {
	text := m.Template
	if text == "" && m.Special["eos_token"] == protocol.EndOfTurn {
		text = protocol.ChatML
	}
	if text == "" {
		return nil, errors.New("the model has no chat template")
	}
	bound, err := protocol.Chat{}.With(protocol.ChatModel{Template: text, ToolTemplate: m.ToolTemplate,
		Special: m.Special, Added: m.Tokens.Added(), Ends: m.Ends})
	if bound == (protocol.Chat{}) { // other templates can render some conversations
		return nil, fmt.Errorf("the model's chat template: %w", err)
	}
	return &chat{protocol.ForgeableMarks(m.Tokens.Added()), bound}, nil
}

// conversation is what a template renders.
type conversation struct {
	messages []json.RawMessage
	tools    []json.RawMessage
	values   map[string]json.RawMessage // further names of the template
	prompt   bool                       // whether the assistant's turn is begun
}

// render renders a conversation. Errors name the field at fault.
func (c *chat) render(v conversation, now time.Time) (string, error) {
	messages := make([]any, len(v.messages))
	for i, raw := range v.messages {
		m, err := c.message(fmt.Sprintf("messages[%d]", i), raw)
		if err != nil {
			return "", err
		}
		messages[i] = m
	}
	tools := make([]any, len(v.tools))
	for i, raw := range v.tools {
		t, err := jinja.From(raw)
		if err != nil {
			return "", invalid(fmt.Sprintf("tools[%d]", i), "%v", err)
		}
		tools[i] = jinja.Texts(t, c.harmless)
	}
	values := jinja.NewDict("add_generation_prompt", v.prompt)
	for name, raw := range v.values {
		value, err := jinja.From(raw)
		if err != nil {
			return "", invalid("chat_template_kwargs."+name, "%v", err)
		}
		values.Set(name, value)
	}
	text, err := c.Fill(messages, tools, values, now)
	if err != nil {
		return "", invalid("messages", "the model's chat template: %v", err).coded("chat_template")
	}
	return text, nil
}

// harmless changes what others wrote so that it holds none of the tokenizer's added tokens.
func (c *chat) harmless(text string) string { return protocol.Harmless(text, c.marks) }

// message reads the message at a place: contents in parts become one text, and the arguments of calls become objects,
// as templates expect them.
func (c *chat) message(at string, raw json.RawMessage) (*jinja.Dict, *apiError) {
	v, err := jinja.From(raw)
	if err != nil {
		return nil, invalid(at, "%v", err)
	}
	m, ok := v.(*jinja.Dict)
	if !ok {
		return nil, invalid(at, "must be an object")
	}
	role, _ := m.Get("role")
	name, ok := role.(string)
	if !ok || name == "" {
		return nil, invalid(at+".role", "must be a text")
	}
	if name == "developer" { // the name of OpenAI's newer models
		m.Set("role", "system")
	}
	content, given := m.Get("content")
	text, fault := contentText(at+".content", content)
	switch {
	case fault != nil:
		return nil, fault
	case text != nil:
		m.Set("content", *text)
	case name != "assistant":
		return nil, invalid(at+".content", "must be a text or a list of parts")
	case !given:
		m.Set("content", nil)
	}
	if calls, ok := m.Get("tool_calls"); ok {
		if calls == nil {
			m.Set("tool_calls", []any{})
		} else if fault := callArguments(at+".tool_calls", calls); fault != nil {
			return nil, fault
		}
	}
	if name != "assistant" {
		m, _ = jinja.Texts(m, c.harmless).(*jinja.Dict)
	}
	return m, nil
}

// contentText returns a content as one text; nil for null.
func contentText(at string, content any) (*string, *apiError) {
	switch content := content.(type) {
	case nil:
		return nil, nil
	case string:
		return &content, nil
	case []any:
		var texts []string
		for i, part := range content {
			p, _ := part.(*jinja.Dict)
			if p == nil {
				return nil, invalid(fmt.Sprintf("%s[%d]", at, i), "must be an object")
			}
			kind, _ := p.Get("type")
			text, _ := p.Get("text")
			s, ok := text.(string)
			if kind != "text" || !ok {
				return nil, invalid(fmt.Sprintf("%s[%d]", at, i), "only parts of the type text can be read")
			}
			texts = append(texts, s)
		}
		all := strings.Join(texts, "\n")
		return &all, nil
	}
	return nil, invalid(at, "must be a text or a list of parts")
}

// callArguments turns the arguments of calls, which the API writes as a text, into objects.
func callArguments(at string, calls any) *apiError {
	list, ok := calls.([]any)
	if !ok {
		return invalid(at, "must be a list")
	}
	for i, call := range list {
		at := fmt.Sprintf("%s[%d]", at, i)
		c, _ := call.(*jinja.Dict)
		if c == nil {
			return invalid(at, "must be an object")
		}
		f, _ := c.Get("function")
		function, _ := f.(*jinja.Dict)
		if function == nil {
			return invalid(at+".function", "must be an object")
		}
		if name, _ := function.Get("name"); name == nil || name == "" {
			return invalid(at+".function.name", "must be a text")
		}
		arguments, _ := function.Get("arguments")
		if text, ok := arguments.(string); ok {
			v, err := jinja.From([]byte(text))
			if _, object := v.(*jinja.Dict); err == nil && object {
				function.Set("arguments", v)
			}
		}
	}
	return nil
}
