package dataset

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Function makes another value of one, which is not nil.
type Function struct {
	Name, Doc string
	of        func(v any) (any, error)
}

// Functions are what may follow a path in a mapping.
var Functions = []Function{
	{"boxed", "what is in the last \\boxed{} of a text", lastBoxed},
	{"number", "the first whole number of a text: 5 of Level 5", firstNumber},
	{"user", "the text of the last message of a user, in a list of messages", spokenBy("user")},
	{"assistant", "the text of the last message of the assistant", spokenBy("assistant")},
	{"spoken", "the texts of the messages of the system and the user, with blank lines between them", spoken},
	{"json", "a nested value as JSON", asJSON},
	{"lines", "the texts of a list, each on lines of its own", joinLines},
	{"defined", "the names of the functions and classes that a Python program defines", defined},
	{"entry", "the function that tests call: fn_name or func_name; without one __main__, the whole program", entryOf},
	{"tests", "a Python test of {inputs, outputs}, as TACO and APPS have it, or of LiveCodeBench's cases", testsOf},
}

// lastBoxed matches braces. A text without a closed box has nothing.
func lastBoxed(v any) (any, error) {
	text, err := textOf(v)
	const open = `\boxed{`
	at := strings.LastIndex(text, open)
	if err != nil || at < 0 {
		return nil, err
	}
	depth := 1
	for i, c := range text[at+len(open):] {
		switch c {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return text[at+len(open):][:i], nil
			}
		}
	}
	return nil, nil
}

var (
	wholeNumber = regexp.MustCompile(`[0-9]+`)
	definition  = regexp.MustCompile(`(?m)^(?:def|class)\s+([A-Za-z_][A-Za-z_0-9]*)`)
)

func firstNumber(v any) (any, error) {
	text, err := textOf(v)
	if n := wholeNumber.FindString(text); n != "" {
		return n, err
	}
	return nil, err
}

// defined returns a list of names.
func defined(v any) (any, error) {
	text, err := textOf(v)
	var names []any
	for _, m := range definition.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names, err
}

// speakers are the roles of ShareGPT's messages, which are {from, value} instead of {role, content}.
var speakers = map[string]string{"human": "user", "gpt": "assistant"}

func messagesOf(v any) (out []map[string]any, err error) {
	list, is := v.([]any)
	if !is {
		return nil, fmt.Errorf("must be a list of messages, got %.20v", v)
	}
	for _, item := range list {
		m, _ := item.(map[string]any)
		if from, is := m["from"].(string); is {
			m = map[string]any{"role": cmp.Or(speakers[from], from), "content": m["value"]}
		}
		out = append(out, m)
	}
	return out, nil
}

// spokenBy returns the last message of a role.
func spokenBy(role string) func(any) (any, error) {
	return func(v any) (any, error) {
		messages, err := messagesOf(v)
		for _, m := range slices.Backward(messages) {
			if m["role"] == role {
				return m["content"], nil
			}
		}
		return nil, err
	}
}

// spoken leaves out what an assistant said.
func spoken(v any) (any, error) {
	messages, err := messagesOf(v)
	var texts []string
	for _, m := range messages {
		if text, is := m["content"].(string); is && (m["role"] == "system" || m["role"] == "user") {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n"), err
}

func asJSON(v any) (any, error) {
	if text, is := v.(string); is && json.Valid([]byte(text)) {
		return text, nil
	}
	text, err := json.Marshal(v)
	return string(text), err
}

func joinLines(v any) (any, error) {
	texts, err := textsOf(v)
	if len(texts) == 0 {
		return nil, err
	}
	return strings.Join(texts, "\n") + "\n", err
}
