package protocol

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/jinja"
)

// CheckCalls refuses a template whose calls Parse does not read: every turn that calls a tool would fail, or count as
// the answer. It renders a call of each tool and parses it. A template that writes nothing of the call fits: its model
// writes calls as the prompt tells it to.
func (c Chat) CheckCalls(tools []Tool) error {
	silent, _ := c.called("", nil, orPython(tools)) // a template may refuse a message that says nothing
	for _, t := range orPython(tools) {
		arguments, err := json.Marshal(sampleOf(t.Parameters))
		if err != nil {
			return fmt.Errorf("tool %s: %w", t.Name, err)
		}
		text, err := c.callOf(t, arguments, tools)
		if err != nil {
			return fmt.Errorf("the chat template writes no call of the tool %s: %w", t.Name, err)
		}
		if text == silent {
			continue
		}
		read := text
		if c.parts().opening != "" && !strings.Contains(text, thinkClose) { // history leaves the reasoning out
			read = thinkClose + text
		}
		got := c.Parse(read, tools)
		if len(got.Calls) == 1 && holds(got, env.Move{Tool: t.Name, Arguments: string(arguments)}) && got.WellFormed {
			continue
		}
		return fmt.Errorf("the chat template writes a call of the tool %s as %.300q, which protocol chat does not "+
			"read: it reads JSON objects with name and arguments in <tool_call> tags; use a model whose template "+
			"writes them, or another rollout.protocol, such as hermes", t.Name, text)
	}
	return nil
}

// callOf returns the response that the template writes for a message with one call. Some templates want the arguments
// as an object, others as text.
func (c Chat) callOf(t Tool, arguments []byte, tools []Tool) (text string, err error) {
	object, err := jinja.From(arguments)
	if err != nil {
		return "", err
	}
	for _, value := range []any{object, string(arguments)} {
		if text, err = c.called(t.Name, value, orPython(tools)); err == nil {
			break
		}
	}
	return text, err
}

// called returns the response that the template writes for a message with one call, or with none if name is "".
func (c Chat) called(name string, arguments any, tools []Tool) (string, error) {
	before := []any{message("user", "a")}
	m := message("assistant", "")
	if name != "" {
		m.Set("tool_calls", []any{jinja.NewDict("id", "call00000", "type", "function",
			"function", jinja.NewDict("name", name, "arguments", arguments))})
	}
	prompt, err := c.render(before, tools, false)
	if err != nil {
		return "", err
	}
	whole, err := c.render(append(before, m), tools, false)
	if err != nil {
		return "", err
	}
	text := strings.TrimPrefix(whole, prompt)
	if begun, err := c.render(before, tools, true); err == nil && strings.HasPrefix(whole, begun) {
		text = whole[len(begun):]
	}
	end, least := c.parts().end, len(text)
	for _, token := range append([]string{end}, c.parts().ends...) {
		if i := strings.Index(text, token); i >= 0 && i < least {
			end, least = token, i
		}
	}
	return text[:least] + end, nil
}

// sampleOf returns arguments that a schema of a tool allows, as far as types and enumerations go.
func sampleOf(parameters json.RawMessage) map[string]any {
	var schema struct {
		Properties map[string]struct {
			Type any   `json:"type"`
			Enum []any `json:"enum"`
		} `json:"properties"`
	}
	out := map[string]any{}
	if json.Unmarshal(parameters, &schema) != nil {
		return out
	}
	for name, p := range schema.Properties {
		kinds, _ := p.Type.([]any)
		switch kind := slices.Concat(kinds, []any{p.Type})[0]; {
		case len(p.Enum) > 0:
			out[name] = p.Enum[0]
		case kind == "integer", kind == "number":
			out[name] = 1
		case kind == "boolean":
			out[name] = true
		case kind == "array":
			out[name] = []any{}
		case kind == "object":
			out[name] = map[string]any{}
		default:
			out[name] = probe
		}
	}
	return out
}
