package protocol

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/internal/jinja"
	"github.com/ropewalk/ropewalk/rollout/toolcall"
)

// findEnd finds the added token that the template writes after an assistant's message or, if it writes none, the one
// that begins the next message.
func (c Chat) findEnd(added []string) (string, error) {
	said := []any{message("user", "a"), message("assistant", probe)}
	text, err := c.render(said, nil, false)
	if err != nil { // some templates are for conversations with tools alone
		var failed error
		if text, failed = c.render(said, []Tool{knownTool}, false); failed != nil {
			return "", err
		}
	}
	_, after, found := strings.Cut(text, probe)
	if !found {
		return "", errors.New("the chat template does not write what an assistant's message says")
	}
	for _, form := range toolcall.All {
		for _, token := range form.Around { // ends the content, but not the turn
			after = strings.TrimPrefix(after, token)
		}
	}
	if end := beginningToken(after, added); end != "" {
		return end, nil
	}
	if strings.TrimSpace(after) == "" {
		more := []any{message("user", "a"), message("assistant", probe), message("user", "b")}
		if text, err := c.render(more, nil, false); err == nil {
			_, next, _ := strings.Cut(text, probe)
			c.bound.follows = true
			if end := beginningToken(next, added); end != "" {
				return end, nil
			}
		}
	}
	return "", fmt.Errorf("the chat template ends a turn of the assistant with %.40q, which begins with no token "+
		"of its own", strings.TrimLeft(after, " \n"))
}

// beginningToken returns the longest of some tokens that a text begins with, after white space; "" if it begins with
// none.
func beginningToken(text string, added []string) (longest string) {
	text = strings.TrimLeft(text, " \n")
	for _, token := range added {
		if strings.HasPrefix(text, token) && len(token) > len(longest) && strings.TrimSpace(token) != "" {
			longest = token
		}
	}
	return longest
}

// writesResults reports whether the template writes the result of a known call.
func (c Chat) writesResults() bool {
	tools := []Tool{knownTool}
	said, results := c.turn(Round{Response: c.Form().Write(knownTool.Name, known[0]) + c.bound.end,
		Bodies: []string{resultProbe}}, tools, 0)
	text, err := c.render(append([]any{message("user", "a"), said}, results...), tools, true)
	return err == nil && strings.Contains(text, resultProbe)
}

// known are calls that show the form of a template's calls, and their tool.
var (
	knownTool = Tool{Name: "look_it_up", Description: "Looks it up.", Parameters: json.RawMessage(`{"type": ` +
		`"object", "properties": {"words": {"type": "string", "description": "words"}, "most": {"type": "integer", ` +
		`"description": "most"}, "sure": {"type": "boolean", "description": "sure"}, "among": {"type": "array", ` +
		`"items": {"type": "string"}, "description": "among"}}, "required": ["words"]}`)}
	known = []string{`{"words": "the f0rm", "most": 17, "sure": true, "among": ["x y", "z"]}`, `{"words": "an0ther"}`}
)

// Calls names the form of calls, and says if the template writes none: then the form is a guess.
func (c Chat) Calls() string {
	switch p := c.parts(); {
	case p.form == nil:
		return "none that is known"
	case p.sample == "" && c.Format == "" && c.bound != nil:
		return p.form.Name + " (the template writes no calls)"
	}
	return c.Form().Name
}

// Form returns the form of calls; Hermes' where the template's own is not known, in which case CheckCalls refuses it.
func (c Chat) Form() *toolcall.Form { return cmp.Or(c.parts().form, toolcall.All[0]) }

// findForm finds the form of calls that the template writes: it renders known calls, and looks for the form that reads
// them. A template that writes nothing of them has the form whose mark its prompt explains, or that of Hermes. nil
// means that no form reads what the template writes.
func (c Chat) findForm() *toolcall.Form {
	tools := []Tool{knownTool}
	for _, calls := range [][]string{known, known[:1]} {
		for _, asText := range []bool{false, true} {
			c.bound.argumentsAsText = asText
			texts := map[string]string{} // by the id of a call, which is all that depends on the form
			for _, form := range toolcall.All {
				id := form.CallID(knownTool.Name, 0)
				text, rendered := texts[id]
				if !rendered {
					var err error
					if text, err = c.called(form, knownTool.Name, calls, tools); errors.Is(err, jinja.ErrExceeded) {
						return toolcall.All[0] // CheckCalls renders it once more, and says so
					}
					texts[id] = text
				}
				if !strings.Contains(text, knownTool.Name) {
					continue
				}
				if c.bound.sample == "" {
					c.bound.sample = text
				}
				if c.reads(form, text, calls) {
					return form
				}
			}
		}
	}
	if c.bound.argumentsAsText = false; c.bound.sample != "" {
		return nil
	}
	prompt, err := c.render([]any{message("user", "a")}, tools, true)
	for _, form := range toolcall.All {
		if err == nil && strings.Contains(prompt, form.Marks[0]) {
			return form
		}
	}
	return toolcall.All[0]
}

// reads reports whether a form reads the known calls in a text.
func (c Chat) reads(form *toolcall.Form, text string, calls []string) bool {
	for _, stop := range append([]string{c.bound.end}, form.Stops...) {
		text = strings.TrimSuffix(strings.TrimSpace(text), stop)
	}
	_, closing := form.ThinkTags()
	got := form.Read(text, formTools([]Tool{knownTool}), false, true)
	if strings.Contains(text, closing) {
		got = form.Read(text, formTools([]Tool{knownTool}), true, true)
	}
	if len(got.Calls) != len(calls) || got.Open {
		return false
	}
	for i, call := range got.Calls {
		if call.Fault != "" || call.Name != knownTool.Name || !sameArguments(call.Arguments, calls[i]) {
			return false
		}
	}
	return true
}
