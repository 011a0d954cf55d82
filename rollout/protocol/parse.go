package protocol

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/env"
)

// Parsed is what a response asks for and answers.
type Parsed struct {
	Calls []env.ToolCall // one a block, those that cannot run included
	// Answer is the content of the last box of the last answer pair, if HasAnswer.
	Answer     string
	HasAnswer  bool
	AnswerTags int // closed answer pairs
}

// Why a block cannot run, in the words that the policy reads.
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

var messages = []string{
	messageNotJSON, messageNoName, messageNoArguments, messageNotObject,
	messageNoCode, messageInput, messageUnexpected, messageUnknown,
}

// Parse reads the calls and the answer out of one response.
func Parse(response string) Parsed {
	var p Parsed
	for _, block := range between(response, callTag, callTagClose) {
		p.Calls = append(p.Calls, parseCall(block))
	}
	pairs := between(response, answerTag, answerTagClose)
	p.AnswerTags = len(pairs)
	if len(pairs) > 0 {
		p.Answer, p.HasAnswer = LastBox(pairs[len(pairs)-1])
	}
	return p
}

// between returns the text of every non-greedy open…end match, left to right.
func between(text, open, end string) []string {
	var found []string
	for {
		_, rest, ok := strings.Cut(text, open)
		if !ok {
			return found
		}
		inside, after, ok := strings.Cut(rest, end)
		if !ok {
			return found
		}
		found = append(found, inside)
		text = after
	}
}

func parseCall(block string) env.ToolCall {
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
	if name != ToolName && name != ToolNameCode {
		return refuse(string(raw), name, env.CallUnknownTool, messageUnknown+fmt.Sprintf("%q", name))
	}
	return parseArguments(name, raw)
}

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
	if unexpected := firstOther(arguments, "code", "input"); unexpected != "" {
		return bad(messageUnexpected + fmt.Sprintf("%q", unexpected))
	}
	return env.ToolCall{Name: name, Arguments: string(raw), Code: code, Stdin: stdin}
}

func refuse(arguments, name string, kind env.CallError, message string) env.ToolCall {
	return env.ToolCall{Name: name, Arguments: arguments, Error: kind, Message: message}
}

// object decodes a JSON object whose keys are matched exactly, as Python does.
func object(data []byte) (map[string]json.RawMessage, bool) {
	var fields map[string]json.RawMessage
	err := json.Unmarshal(data, &fields)
	return fields, err == nil && fields != nil
}

// text decodes a JSON string; null and absence are none.
func text(data json.RawMessage) (string, bool) {
	var s *string
	if err := json.Unmarshal(data, &s); err != nil || s == nil {
		return "", false
	}
	return *s, true
}

// firstOther returns the first key in byte order that is none of the known ones, or "".
func firstOther(fields map[string]json.RawMessage, known ...string) string {
	for _, k := range known {
		delete(fields, k)
	}
	first := ""
	for k := range fields {
		if first == "" || k < first {
			first = k
		}
	}
	return first
}

// LastBox returns the content of the last \boxed{…} of s by matching braces. A last box without
// its end yields none: there is no falling back to an earlier one.
func LastBox(s string) (string, bool) {
	i := strings.LastIndex(s, boxOpen)
	if i < 0 {
		return "", false
	}
	inside := s[i+len(boxOpen):]
	depth := 1
	for j := 0; j < len(inside); j++ {
		switch inside[j] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return inside[:j], true
			}
		}
	}
	return "", false
}
