package env

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Tests are the tests of a program, in HumanEval's form. Their JSON is the gold of a task whose answer is a program.
type Tests struct {
	// Prompt is what the policy reads: imports, perhaps other functions, and the head of the function. It may also be a
	// text that is not Python.
	Prompt string `json:"prompt"`
	Entry  string `json:"entry_point"` // name of the function
	// Test is Python. It defines check(candidate), or tests the function by its name.
	Test string `json:"test"`
}

// Gold returns the tests as the gold of a task.
func (t Tests) Gold() (string, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("write the tests of a program: %w", err)
	}
	return string(text), nil
}

// ReadTests reads what Gold has written.
func ReadTests(gold string) (Tests, error) {
	var t Tests
	if err := Decode([]byte(gold), &t); err != nil {
		return t, fmt.Errorf("read the tests of a program: %w", err)
	}
	if t.Entry == "" || t.Test == "" {
		return t, errors.New("read the tests of a program: entry_point or test is missing")
	}
	return t, nil
}
