package serve

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
)

// Models write calls in a few forms. Each is found by how it begins.
const (
	callOpen   = "<tool_call>" // Hermes, Qwen, SmolLM2: a JSON object in tags, any number of times
	callClose  = "</tool_call>"
	callList   = "[TOOL_CALLS]"   // Mistral: a JSON list up to the end
	callPython = "<|python_tag|>" // Llama 3: a JSON object up to the end, with or without this token
)

// callMarks are kept in the text until calls are found, even if the tokenizer says that they are special.
var callMarks = []string{callOpen, callClose, callList, callPython}

// call is one call of a tool.
type call struct{ Name, Arguments string }

// callFinder separates the text of a response from its calls. Text before the first call is passed on at once, except
// white space and what may begin a call.
type callFinder struct {
	thoughts
	space strings.Builder // white space before held
	held  string          // a few bytes, unless a call has begun
	rest  strings.Builder // what follows the beginning of a call
	begun bool            // whether text has been passed on
	calls bool            // whether a call may have begun: everything else is held
}

// push adds text, and returns what is certainly no part of a call.
func (c *callFinder) push(text string) string {
	passed, text := c.take(text)
	return passed + c.spoken(text)
}

// spoken is push of text outside of reasoning.
func (c *callFinder) spoken(text string) string {
	if c.calls {
		c.rest.WriteString(text)
		return ""
	}
	c.held += text
	c.skipSpace()
	if c.held == "" {
		return ""
	}
	if start := c.held; !c.begun {
		if start[0] == '{' || overlaps(start, callPython) || overlaps(start, callList) {
			c.calls = strings.HasPrefix(start, "{") || strings.HasPrefix(start, callPython) ||
				strings.HasPrefix(start, callList)
			return ""
		}
	}
	cut := len(c.held)
	for _, mark := range []string{callOpen, callList} {
		if i := strings.Index(c.held, mark); i >= 0 && i < cut {
			cut, c.calls = i, true
		}
	}
	if !c.calls {
		hold := textOut{stops: []string{callOpen, callList}}
		cut -= hold.mayBegin(c.held)
	}
	cut = len(strings.TrimRightFunc(c.held[:cut], unicode.IsSpace))
	if cut == 0 {
		return ""
	}
	out := c.space.String() + c.held[:cut]
	c.space.Reset()
	c.held, c.begun = c.held[cut:], true
	c.skipSpace()
	return out
}

// skipSpace takes white space out of the text that is looked at again with each piece.
func (c *callFinder) skipSpace() {
	start := strings.TrimLeftFunc(c.held, unicode.IsSpace)
	c.space.WriteString(c.held[:len(c.held)-len(start)])
	c.held = start
}

// overlaps reports whether a text begins with a mark, or is the beginning of one.
func overlaps(text, mark string) bool {
	return strings.HasPrefix(text, mark) || strings.HasPrefix(mark, text)
}

// end returns the rest of the text, and the calls. Something that looks like a call and is none is text.
func (c *callFinder) end() (text string, calls []call) {
	passed := c.left()
	if !c.inside {
		passed = c.spoken(passed)
	}
	defer func() { text = passed + text }()
	text = c.space.String() + c.held + c.rest.String()
	c.space.Reset()
	c.held = ""
	c.rest.Reset()
	if rest, found, ok := tagged(text); ok {
		return rest, found
	}
	start := strings.TrimSpace(text)
	if _, after, ok := strings.Cut(start, callList); ok {
		if found := listed([]byte(after)); found != nil {
			return "", found
		}
	}
	if !c.begun {
		start = strings.TrimSpace(strings.TrimPrefix(start, callPython))
		if one, ok := oneCall([]byte(start)); ok {
			return "", []call{one}
		}
	}
	return text, nil
}

// tagged finds calls in tags. It returns the text outside of them; ok is false if there are none, or one that cannot be
// read.
func tagged(text string) (rest string, calls []call, ok bool) {
	var outside strings.Builder
	for {
		before, inside, found := strings.Cut(text, callOpen)
		if !found {
			break
		}
		block, after, closed := strings.Cut(inside, callClose)
		if !closed {
			block, after = inside, "" // the model stopped after the object
		}
		one, valid := oneCall([]byte(strings.TrimSpace(block)))
		if !valid {
			return "", nil, false
		}
		calls = append(calls, one)
		outside.WriteString(strings.TrimSpace(before))
		text = after
	}
	outside.WriteString(strings.TrimSpace(text))
	return outside.String(), calls, len(calls) > 0
}

// listed reads a JSON list of calls; nil if it is none.
func listed(text []byte) (out []call) {
	var list []json.RawMessage
	if json.Unmarshal(bytes.TrimSpace(text), &list) != nil {
		return nil
	}
	for _, raw := range list {
		one, ok := oneCall(raw)
		if !ok {
			return nil
		}
		out = append(out, one)
	}
	return out
}

// oneCall reads the JSON object of a call.
func oneCall(text []byte) (call, bool) {
	var v struct {
		Name       string
		Arguments  json.RawMessage
		Parameters json.RawMessage // Llama's word
	}
	if json.Unmarshal(text, &v) != nil || v.Name == "" {
		return call{}, false
	}
	if v.Arguments == nil {
		v.Arguments = v.Parameters
	}
	var inside string
	switch {
	case v.Arguments == nil:
		v.Arguments = []byte("{}")
	case json.Unmarshal(v.Arguments, &inside) == nil:
		v.Arguments = []byte(inside)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, v.Arguments); err != nil || compact.Len() == 0 || compact.Bytes()[0] != '{' {
		return call{}, false
	}
	return call{v.Name, compact.String()}, true
}
