package toolcall

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// objects are forms whose calls are JSON objects, or lists of them.
type objects struct {
	open, close string // of a block; close is "" if none follows
	between     string // characters that may separate values, besides white space
	name        string // the key of a call's name
	arguments   []string
	keyed       bool   // an object has one key, the name, and its value is the arguments
	list        bool   // calls are written as a list
	line        string // what is written around them
	bare        bool   // calls are written without open and close
}

// read reads a block.
func (o objects) read(text string, _ []Tool, ended bool) reading {
	body, marked := strings.CutPrefix(text, o.open)
	rest := strings.TrimLeft(body, spaces)
	if !strings.HasPrefix(rest, "{") && !strings.HasPrefix(rest, "[") {
		return o.mention(body, len(text)-len(body))
	}
	var out reading
	for {
		raw, n, cut := value(rest)
		if n == 0 {
			return o.broken(out, text, body, rest, cut && !ended, marked)
		}
		calls := o.calls(raw, marked)
		if calls == nil && !marked {
			return out // a JSON value of an answer
		} else if calls == nil {
			calls = []Call{{Arguments: raw, Fault: "the block is no JSON object with a name and arguments"}}
		}
		out.calls = append(out.calls, calls...)
		rest = rest[n:]
		out.n = len(text) - len(rest)
		rest = strings.TrimLeft(rest, spaces+o.between)
		if o.close != "" && strings.HasPrefix(rest, o.close) {
			out.n = len(text) - len(rest) + len(o.close)
			return out
		}
		if !strings.HasPrefix(rest, "{") && !(strings.HasPrefix(rest, "[") && o.close == "") {
			break
		}
	}
	switch {
	case o.close == "" || rest != "" && strings.HasPrefix(rest, o.open) || rest == "" && ended:
		return out
	case rest == "":
		return reading{calls: out.calls[:len(out.calls)-1], open: true, begun: &out.calls[len(out.calls)-1]}
	}
	return o.broken(reading{}, text, body, rest, false, true) // something between the object and its end
}

// mention is a mark that no JSON follows: text, or a block that holds something else.
func (o objects) mention(body string, start int) reading {
	inside, _, closed := strings.Cut(body[:index(body, o.open, 0)], o.close)
	block := strings.TrimSpace(inside)
	if !closed || block == "" {
		return reading{open: strings.TrimSpace(body) == ""}
	}
	return reading{n: start + len(inside) + len(o.close),
		calls: []Call{{Arguments: block, Fault: "the block is not a JSON object"}}}
}

// broken is a block whose JSON cannot be read: it is cut, or ends with its closing tag.
func (o objects) broken(out reading, text, body, rest string, cut, marked bool) reading {
	closing, begun := -1, beginning(rest, o)
	if o.close != "" && !cut {
		closing = strings.Index(body, o.close)
	}
	switch {
	case closing >= 0:
		c := Call{Arguments: strings.TrimSpace(body[:closing]), Fault: "the block is not a JSON object"}
		if begun != nil {
			c.Name = begun.Name
		}
		out.n = len(text) - len(body) + closing + len(o.close)
		out.calls = append(out.calls, c)
	case marked || begun != nil || cut && o.mayBegin(rest):
		out.open, out.begun = true, begun
	}
	return out
}

// mayBegin reports whether a text without a mark is the beginning of a call: it says so with the key of the name.
func (o objects) mayBegin(text string) bool {
	text = strings.TrimPrefix(strings.Join(strings.Fields(text), ""), "[")
	key := `{"` + o.name + `":`
	return strings.HasPrefix(text, key) || strings.HasPrefix(key, text)
}

// write writes a call.
func (o objects) write(name, arguments string) string {
	text := "{" + Quote(name) + ": " + arguments + "}"
	if !o.keyed {
		text = "{" + Quote(o.name) + ": " + Quote(name) + ", " + Quote(o.arguments[0]) + ": " + arguments + "}"
	}
	if o.list {
		text = "[" + text + "]"
	}
	if o.bare {
		return text
	}
	return o.open + o.line + text + o.line + o.close
}

// calls reads an object, or each object of a list; nil if one is no call. Behind a mark a call may have no arguments.
func (o objects) calls(raw string, marked bool) []Call {
	var list []json.RawMessage
	if json.Unmarshal([]byte(raw), &list) != nil {
		list = []json.RawMessage{json.RawMessage(raw)}
	}
	var out []Call
	for _, one := range list {
		fields, twice, ok := object(string(one))
		if !ok {
			return nil
		}
		call, ok := o.call(fields, marked)
		if !ok {
			return nil
		}
		if twice != "" {
			call.Fault = fmt.Sprintf("%q is given twice", twice)
		}
		out = append(out, call)
	}
	return out
}

func (o objects) call(fields map[string]json.RawMessage, marked bool) (c Call, ok bool) {
	if o.keyed {
		for name, raw := range fields {
			c.Name, c.Arguments = name, string(raw)
		}
		return checked(c), len(fields) == 1
	}
	if inner, _, is := object(string(fields["function"])); is { // OpenAI's own way to write it
		_ = json.Unmarshal(fields["id"], &c.ID)
		fields = inner
	}
	if raw, given := fields[o.name]; given && json.Unmarshal(raw, &c.Name) != nil {
		return c, false
	}
	for _, key := range []string{"id", "tool_call_id"} {
		_ = json.Unmarshal(fields[key], &c.ID) // without one there is none
	}
	given := marked
	c.Arguments = "{}"
	for _, key := range o.arguments {
		if raw, is := fields[key]; is {
			c.Arguments, given = string(raw), true
		}
	}
	return checked(c), c.Name != "" && given
}

// checked makes arguments that are JSON in a text an object, and finds what is wrong with them.
func checked(c Call) Call {
	var inside string
	if json.Unmarshal([]byte(c.Arguments), &inside) == nil && strings.HasPrefix(strings.TrimSpace(inside), "{") {
		c.Arguments = inside
	}
	switch _, twice, ok := object(c.Arguments); {
	case c.Arguments == "null":
		c.Arguments = "{}"
	case !ok:
		c.Fault = "arguments must be a JSON object"
	case twice != "":
		c.Fault = fmt.Sprintf("the argument %q is given twice", twice)
	}
	return c
}

var callHead = regexp.MustCompile(`^[\[\s]*\{\s*"(\w+)"\s*:\s*"((?:[^"\\]|\\.)*)"\s*,\s*"(\w+)"\s*:\s*`)

// beginning returns the call that a cut object begins, as far as it is certain: nil if that is not even its name.
func beginning(text string, o objects) *Call {
	m := callHead.FindStringSubmatch(text)
	var c Call
	if m == nil || m[1] != o.name || !slices.Contains(o.arguments, m[3]) ||
		json.Unmarshal([]byte(`"`+m[2]+`"`), &c.Name) != nil || c.Name == "" {
		return nil
	}
	c.Arguments = begunObject(text[len(m[0]):])
	return &c
}
