package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// function makes another value of one. The value is decoded (see opened), and not nil.
type function struct {
	name, doc string
	of        func(v any) (any, error)
}

// functions are what may follow a path in a mapping.
var functions = []function{
	{"boxed", "what is in the last \\boxed{} of a text", lastBoxed},
	{"number", "the first whole number of a text: 5 of Level 5", firstNumber},
	{"user", "the text of the last message of a user, in a list of messages", spokenBy("user", "human")},
	{"assistant", "the text of the last message of the assistant", spokenBy("assistant", "gpt")},
	{"lines", "the texts of a list, each on lines of its own", joinLines},
	{"defined", "the name of the last function or class that a Python program defines", lastDefined},
	{"tests", "a Python test of {inputs, outputs, fn_name}, as TACO and APPS have it", testsOf},
}

// Functions lists the functions that may follow a path in a mapping, each with what it does.
func Functions() (out [][2]string) {
	for _, f := range functions {
		out = append(out, [2]string{f.name, f.doc})
	}
	return out
}

func functionNames() string {
	names := make([]string, len(functions))
	for i, f := range functions {
		names[i] = f.name
	}
	return strings.Join(names, ", ")
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

func lastDefined(v any) (any, error) {
	text, err := textOf(v)
	if all := definition.FindAllStringSubmatch(text, -1); all != nil {
		return all[len(all)-1][1], err
	}
	return nil, err
}

// spokenBy reads messages as {role, content} or as {from, value}.
func spokenBy(roles ...string) func(any) (any, error) {
	return func(v any) (any, error) {
		list, is := v.([]any)
		if !is {
			return nil, fmt.Errorf("must be a list of messages, got %.20v", v)
		}
		for i := len(list) - 1; i >= 0; i-- {
			m, _ := list[i].(map[string]any)
			for _, role := range roles {
				switch role {
				case m["role"]:
					return m["content"], nil
				case m["from"]:
					return m["value"], nil
				}
			}
		}
		return nil, nil
	}
}

func joinLines(v any) (any, error) {
	texts, err := textsOf(v)
	return strings.Join(texts, "\n"), err
}

// testsOf writes a test that calls a function, or the method of a class Solution, with each list of arguments. Tests
// of programs that read their standard input name no function, and have no such test.
func testsOf(v any) (any, error) {
	if text, is := v.(string); is {
		var err error
		if v, err = opened(json.RawMessage(text)); err != nil {
			return nil, err
		}
	}
	io, is := v.(map[string]any)
	name, _ := io["fn_name"].(string)
	inputs, _ := io["inputs"].([]any)
	outputs, _ := io["outputs"].([]any)
	switch {
	case !is || len(inputs) != len(outputs):
		return nil, errors.New("must have as many inputs as outputs")
	case name == "" || len(inputs) == 0:
		return nil, nil
	}
	cases, err := json.Marshal([]any{inputs, outputs})
	if err != nil {
		return nil, fmt.Errorf("write the tests: %w", err)
	}
	text, err := json.Marshal(string(cases)) // a JSON string is one of Python's
	return fmt.Sprintf(pythonTest, text, name), err
}

// pythonTest is a test in HumanEval's form. The function may be a method of the class Solution, and the outputs may
// each be in a list of one, as in APPS.
const pythonTest = `import json

def check(candidate):
    inputs, outputs = json.loads(%s)
    function = getattr(candidate(), %q) if "Solution" in globals() else candidate
    for arguments, wanted in zip(inputs, outputs):
        got = function(*arguments)
        got = list(got) if isinstance(got, tuple) else got
        assert got == wanted or [got] == wanted
`
