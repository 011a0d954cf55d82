package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rollout/toolcall"
)

// resultProbe is the result of a call that no template holds, to find whether a template writes results.
const resultProbe = "res01t of n0 call"

// CheckTools refuses a template that does not write the results of calls, or that writes earlier turns differently once
// they follow. CheckCalls is about the calls themselves.
func (c Chat) CheckTools(tools []Tool) error {
	called, p := orPython(tools), c.parts()
	if len(called) == 0 {
		return nil
	}
	call := c.Form().Write(called[0].Name, sampleOf(called[0].Parameters))
	open, closing := c.Form().ThinkTags()
	for _, reasoning := range []string{open + "\na\n" + closing + "\n\n", ""} {
		if p.opening != "" {
			reasoning = "a\n" + closing + "\n\n"
		}
		one := Round{Response: reasoning + call + p.end, Bodies: []string{resultProbe}}
		one.Calls = c.Parse(one.Response, tools).Calls
		for _, rounds := range [][]Round{{one}, {one, one}} {
			text, err := c.Render(View{Task: "a", Tools: tools, Turn: len(rounds), Rounds: rounds})
			if err != nil {
				return err
			}
			if !strings.Contains(text, resultProbe) {
				return errors.New("the chat template does not write the results of calls")
			}
		}
	}
	return nil
}

// CheckCalls refuses a template whose calls Parse does not read: every turn that calls a tool would fail, or count as
// the answer. It renders a call of each tool and parses it. A template that writes nothing of the call fits: its model
// writes calls as the prompt tells it to.
func (c Chat) CheckCalls(tools []Tool) error {
	if c.parts().form == nil {
		return fmt.Errorf("the chat template writes a call of the tool %s as %.300q, which is no form of calls that "+
			"protocol chat reads; rollout.tool_format names one of them: %s", knownTool.Name, c.parts().sample,
			strings.Join(toolcall.Names(), ", "))
	}
	if c.parts().sample == "" && c.bound != nil {
		_, err := c.called(c.Form(), knownTool.Name, known[:1], orPython(tools))
		if err != nil {
			err = fmt.Errorf("the chat template writes no call of the tool %s: %w", knownTool.Name, err)
		}
		return err
	}
	for _, t := range orPython(tools) {
		arguments := sampleOf(t.Parameters)
		text, err := c.called(c.Form(), t.Name, []string{arguments}, orPython(tools))
		if err != nil {
			return fmt.Errorf("the chat template writes no call of the tool %s: %w", t.Name, err)
		}
		read := text
		_, closing := c.Form().ThinkTags()
		if c.parts().opening != "" && !strings.Contains(text, closing) { // history leaves the reasoning out
			read = closing + text
		}
		got := c.Parse(read, tools)
		if len(got.Calls) == 1 && holds(got, env.Move{Tool: t.Name, Arguments: arguments}) && got.WellFormed {
			continue
		}
		if c.parts().unread && !c.Whole { // the policy reads its calls as it has written them
			return nil
		}
		return fmt.Errorf("the chat template writes a call of the tool %s as %.300q, which the form %s does not read; "+
			"use another rollout.tool_format, or another rollout.protocol, such as hermes", t.Name, text, c.Form().Name)
	}
	return nil
}

// called returns the response that the template writes for a message with calls of a tool, with the ids of a form.
func (c Chat) called(form *toolcall.Form, name string, calls []string, tools []Tool) (string, error) {
	before := []any{message("user", "a")}
	m := message("assistant", "")
	var list []any
	for i, arguments := range calls {
		list = append(list, c.callMessage(form.CallID(name, i), name, arguments))
	}
	m.Set("tool_calls", list)
	prompt, err := c.render(before, tools, false)
	if err != nil {
		return "", err
	}
	whole, err := c.render(append(before, m), tools, false)
	if err != nil {
		return "", err
	}
	text := strings.TrimPrefix(whole, prompt)
	if begun, err := c.render(before, tools, true); err == nil {
		text = whole[max(len(whole)-len(text), commonHead(begun, whole)):]
	}
	if c.parts().follows {
		return strings.TrimSuffix(strings.TrimSpace(text), c.parts().end) + c.parts().end, nil
	}
	end, least := c.parts().end, len(text)
	for _, token := range append([]string{end}, c.parts().ends...) {
		if i := strings.Index(text, token); i >= 0 && i < least && token != "" {
			end, least = token, i
		}
	}
	return text[:least] + end, nil
}

// commonHead returns how much two texts have in common, up to a place where a line or a token ends.
func commonHead(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	if n == len(a) {
		return n
	}
	return strings.LastIndexAny(a[:n], "\n>]") + 1
}

// sampleOf returns arguments as JSON that a schema of a tool allows, as far as types and enumerations go.
func sampleOf(parameters json.RawMessage) string {
	var schema struct {
		Properties map[string]struct {
			Type any   `json:"type"`
			Enum []any `json:"enum"`
		} `json:"properties"`
	}
	out := map[string]any{}
	if json.Unmarshal(parameters, &schema) != nil {
		return "{}"
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
	text, _ := json.Marshal(out) // it holds what JSON can
	return string(text)
}
