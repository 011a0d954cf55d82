package protocol

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
)

// Reasons why a block cannot run, in the words that the policy reads.
const (
	messageNotJSON     = "the block is not a JSON object"
	messageNoName      = "name is missing or not a string"
	messageNoArguments = "arguments are missing"
	messageNotObject   = "arguments must be a JSON object"
	messageNoCode      = "code is missing or not a string"
	messageInput       = "input must be a string"
	messageUnexpected  = "unexpected argument "
	messageUnknown     = "unknown tool "
)

// Reasons of protocols whose calls are not JSON.
const (
	messageNotClosed = "the call is not closed"
	messageEmpty     = "the call is empty"
	messageNoText    = "no argument takes the text of a call of "
)

var messages = []string{
	messageNotJSON, messageNoName, messageNoArguments, messageNotObject,
	messageNoCode, messageInput, messageUnexpected, messageUnknown,
}

// between returns the text of every non-greedy open…end match, left to right, and the texts around them, which are
// one more.
func between(text, open, end string) (found, outside []string) {
	for {
		before, rest, ok := strings.Cut(text, open)
		inside, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			return found, append(outside, text)
		}
		found, outside = append(found, inside), append(outside, before)
		text = after
	}
}

// begun counts what is begun after the last match of between and has no end: one or none.
func begun(outside []string, open string) int {
	return min(1, strings.Count(outside[len(outside)-1], open))
}

// rstar2Tool finds the tool that RStar2 calls by a name. The Python tool has the names of the paper and the release.
func rstar2Tool(tools []Tool, name string) (Tool, bool) {
	if name == ToolName || name == ToolNameCode {
		return find(orPython(tools), Python.Name)
	}
	if name == Python.Name {
		return Tool{}, false
	}
	return find(tools, name)
}

// parseCall decodes one block of JSON; known finds a tool by the name that the block calls.
func parseCall(block string, known func(name string) (Tool, bool)) env.ToolCall {
	fields, ok := object([]byte(block))
	if !ok {
		return refuse(block, "", env.CallDecodeError, messageNotJSON)
	}
	name, ok := text(fields["name"])
	if !ok {
		return refuse(block, "", env.CallDecodeError, messageNoName)
	}
	raw, ok := fields["arguments"]
	if !ok {
		return refuse(block, name, env.CallDecodeError, messageNoArguments)
	}
	t, ok := known(name)
	if !ok {
		return refuse(string(raw), name, env.CallUnknownTool, messageUnknown+fmt.Sprintf("%q", name))
	}
	return bind(t, name, raw)
}

// parseArguments reads the arguments of the Python tool.
func parseArguments(name string, raw json.RawMessage) env.ToolCall {
	bad := func(message string) env.ToolCall { return refuse(string(raw), name, env.CallBadArgument, message) }
	arguments, ok := object(raw)
	if !ok {
		return bad(messageNotObject)
	}
	code, ok := text(arguments["code"])
	if !ok {
		return bad(messageNoCode)
	}
	stdin := ""
	if input, given := arguments["input"]; given {
		if stdin, ok = text(input); !ok {
			return bad(messageInput)
		}
	}
	delete(arguments, "code")
	delete(arguments, "input")
	for _, unexpected := range slices.Sorted(maps.Keys(arguments)) {
		return bad(messageUnexpected + fmt.Sprintf("%q", unexpected))
	}
	return env.ToolCall{Name: name, Arguments: string(raw), Code: code, Stdin: stdin}
}

func refuse(arguments, name string, kind env.CallError, message string) env.ToolCall {
	return env.ToolCall{Name: name, Arguments: arguments, Error: kind, Message: message}
}

// object decodes a JSON object. Keys match exactly, as in Python.
func object(data []byte) (map[string]json.RawMessage, bool) {
	var fields map[string]json.RawMessage
	err := json.Unmarshal(data, &fields)
	return fields, err == nil && fields != nil
}

// text decodes a JSON string. ok is false for null and for an absent value.
func text(data json.RawMessage) (string, bool) {
	var s *string
	if err := json.Unmarshal(data, &s); err != nil || s == nil {
		return "", false
	}
	return *s, true
}

// boxes counts the closed boxes of s.
func boxes(s string) int {
	n := 0
	var open []bool // one entry for each open brace: whether it opens a box
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], boxOpen):
			open = append(open, true)
			i += len(boxOpen) - 1
		case s[i] == '{':
			open = append(open, false)
		case s[i] == '}' && len(open) > 0:
			if open[len(open)-1] {
				n++
			}
			open = open[:len(open)-1]
		}
	}
	return n
}
