package protocol

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
)

// written returns the text of a scripted move if a policy could have written it: Parse finds the move in it, it is well
// formed unless it is broken on purpose, and it reaches a stop at its end and nowhere before.
func written(p Protocol, m env.Move, response string) (string, bool) {
	spec := p.Spec()
	for _, stop := range append([]string{spec.EndOfTurn}, spec.Stops...) {
		if at := strings.Index(response, stop); at >= 0 && at+len(stop) != len(response) {
			return "", false
		}
	}
	got := p.Parse(response, toolsOf(m))
	if !spec.Ends(response) || !(got.WellFormed || m.Broken) || got.Reasoning != m.Thought || !holds(got, m) {
		return "", false
	}
	return response, true
}

// holds reports whether a parsed response is a move. White space around a program or an answer does not matter.
func holds(got Parsed, m env.Move) bool {
	if !m.IsCall() {
		return len(got.Calls) == 0 && got.HasAnswer && got.Answer == strings.TrimSpace(m.Answer)
	}
	if len(got.Calls) != 1 {
		return false
	}
	c := got.Calls[0]
	switch {
	case m.Broken:
		return c.Error == env.CallDecodeError
	case c.Error != "":
		return false
	case m.Tool == "":
		return strings.TrimSpace(c.Code) == strings.TrimSpace(m.Code)
	}
	return c.Name == m.Tool && sameArguments(c.Arguments, m.Arguments)
}

// sameArguments compares two JSON objects, with their texts without white space around them.
func sameArguments(a, b string) bool {
	left, ok := object([]byte(a))
	right, also := object([]byte(b))
	return ok && also && maps.EqualFunc(left, right, func(a, b json.RawMessage) bool {
		x, isText := text(a)
		y, isAlso := text(b)
		if isText && isAlso {
			return strings.TrimSpace(x) == strings.TrimSpace(y)
		}
		return bytes.Equal(a, b)
	})
}

// toolsOf returns tools with which a response that makes the move can be parsed.
func toolsOf(m env.Move) []Tool {
	if m.Tool == "" {
		return nil
	}
	fields, _ := object([]byte(m.Arguments)) // what is no object has no fields
	required := slices.Collect(maps.Keys(fields))
	parameters, _ := json.Marshal(map[string]any{"required": required}) // texts always encode
	return []Tool{{Name: m.Tool, Parameters: parameters}}
}
