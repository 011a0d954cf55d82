package protocol

import (
	"cmp"
	"errors"
	"strings"

	"github.com/ropewalk/ropewalk/internal/jinja"
)

// Render is Context with the template's error.
func (c Chat) Render(v View) (string, error) {
	messages, tools := c.opening(v), orPython(v.Tools)
	if v.Turn > 0 && len(v.Rounds) == 0 {
		return "", errors.New("a later turn has no rounds before it")
	}
	calls := 0
	for i, r := range v.Rounds {
		said, results := c.turn(r, tools, calls)
		if c.Whole { // it is read again as text, which must not hold the tokens of others
			said, _ = jinja.Texts(said, func(s string) string { return guard(s, c.parts().marks) }).(*jinja.Dict)
		}
		messages = append(messages, said)
		if i == len(v.Rounds)-1 && !c.Whole {
			return c.between(messages, results, r.Response, tools)
		}
		calls += len(r.Bodies)
		messages = append(messages, results...)
	}
	return c.render(messages, tools, true)
}

// between renders what the template puts between a response, which is the last message, and the next one.
func (c Chat) between(messages, results []any, response string, tools []Tool) (string, error) {
	before, err := c.render(messages, tools, false)
	if err != nil {
		return "", err
	}
	whole, err := c.render(append(messages, results...), tools, true)
	if err != nil {
		return "", err
	}
	rest, same := strings.CutPrefix(whole, before)
	if !same { // some templates end a conversation with a token of its own
		before = strings.TrimSuffix(before, c.parts().special["eos_token"])
		rest, same = strings.CutPrefix(whole, before)
	}
	if !same { // some templates write that the last response has no reasoning, and leave it out when results follow
		before = c.withoutEmptyThought(before)
		rest, same = strings.CutPrefix(whole, before)
	}
	p, at := c.parts(), -1
	if p.follows {
		at = len(before)
		text, _ := c.cut(response)
		rest = strings.TrimPrefix(rest, response[len(text):])
	}
	// An end in an earlier message is none of this response.
	earlier, err := c.render(messages[:len(messages)-1], tools, false)
	if err != nil || !strings.HasPrefix(before, earlier) {
		earlier = ""
	}
	for _, end := range append([]string{p.end}, p.ends...) {
		if i := strings.LastIndex(before, end); i >= len(earlier) {
			at = max(at, i+len(end))
		}
	}
	if at < 0 || !same {
		return "", errRewrites
	}
	return before[at:] + rest, nil
}

// withoutEmptyThought removes the last reasoning of a text if it is empty, with the white space behind it.
func (c Chat) withoutEmptyThought(text string) string {
	open, closing := c.Form().ThinkTags()
	at := strings.LastIndex(text, open)
	if at < 0 {
		return text
	}
	inside, after, closed := strings.Cut(text[at+len(open):], closing)
	if !closed || strings.TrimSpace(inside) != "" {
		return text
	}
	return text[:at] + strings.TrimLeft(after, " \n")
}

var errRewrites = errors.New("the chat template writes earlier turns differently once the results of calls " +
	"follow, so the model would be trained on text that it never saw")

// turn returns a response as the message that templates expect, and the messages of its results. calls counts the calls
// before it.
func (c Chat) turn(r Round, tools []Tool, calls int) (said *jinja.Dict, results []any) {
	text, ended := c.cut(r.Response)
	form := c.Form()
	read := form.Read(text, formTools(tools), c.parts().opening != "", ended)
	said = message("assistant", strings.TrimSpace(read.Content))
	if read.Reasons {
		setReasoning(said, strings.TrimSpace(read.Reasoning))
	}
	var list []any
	for i, body := range r.Bodies {
		name, id, arguments := "", "", "{}"
		if i < len(read.Calls) {
			name, id = read.Calls[i].Name, read.Calls[i].ID
			if read.Calls[i].Fault == "" {
				arguments = read.Calls[i].Arguments
			}
		}
		if name == "" && len(tools) > 0 {
			name = tools[0].Name // a call that cannot be read has no name, and templates want one
		}
		id = cmp.Or(id, form.CallID(name, calls+i))
		list = append(list, c.callMessage(id, name, arguments))
		result := message("tool", body)
		result.Set("name", name)
		result.Set("tool_call_id", id)
		results = append(results, result)
	}
	if len(list) > 0 {
		said.Set("tool_calls", list)
	}
	return said, results
}

// setReasoning sets the reasoning of a message, by the names that templates have for it.
func setReasoning(said *jinja.Dict, reasoning string) {
	said.Set("reasoning_content", reasoning)
	said.Set("thinking", reasoning)
}

// callMessage returns a call as templates expect it. Its arguments are an object, or a text where the template wants
// one.
func (c Chat) callMessage(id, name, arguments string) *jinja.Dict {
	var value any = arguments
	if !c.parts().argumentsAsText {
		if v, err := jinja.From([]byte(arguments)); err == nil {
			value = v
		}
	}
	return jinja.NewDict("id", id, "type", "function", "function", jinja.NewDict("name", name, "arguments", value))
}
