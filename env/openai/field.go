package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// object is a JSON object whose keys match exactly.
type object map[string]json.RawMessage

// faultError is a fault at a path of an item: messages[4].tool_calls[0].id.
type faultError struct{ path, text string }

func (e *faultError) Error() string {
	if e.path == "" {
		return e.text
	}
	return e.path + ": " + e.text
}

func fault(path, format string, args ...any) error {
	return &faultError{path, fmt.Sprintf(format, args...)}
}

// within prefixes the path of a fault with the path of the enclosing value.
func within(path string, err error) error {
	var inner *faultError
	if !errors.As(err, &inner) {
		return err
	}
	switch {
	case inner.path == "":
		return &faultError{path, inner.text}
	case inner.path[0] == '[':
		return &faultError{path + inner.path, inner.text}
	}
	return &faultError{path + "." + inner.path, inner.text}
}

// readObject reads a value that must be an object.
func readObject(value json.RawMessage) (object, error) {
	var o object
	if err := json.Unmarshal(value, &o); err != nil || o == nil {
		return nil, fault("", "must be an object, got %s", shown(value))
	}
	return o, nil
}

// readList reads a value that must be a list.
func readList(value json.RawMessage) ([]json.RawMessage, error) {
	var l []json.RawMessage
	if err := json.Unmarshal(value, &l); err != nil || l == nil {
		return nil, fault("", "must be a list, got %s", shown(value))
	}
	return l, nil
}

// has reports whether a field is present and not null.
func (o object) has(name string) bool {
	value, ok := o[name]
	return ok && string(value) != "null"
}

// text reads a field that must be a string.
func (o object) text(name string) (string, error) {
	var s string
	if !o.has(name) {
		return "", fault(name, "is missing")
	}
	if err := json.Unmarshal(o[name], &s); err != nil {
		return "", fault(name, "must be text, got %s", shown(o[name]))
	}
	return s, nil
}

// name reads a text that must not be empty.
func (o object) name(field string) (string, error) {
	s, err := o.text(field)
	if err == nil && s == "" {
		err = fault(field, "must not be empty")
	}
	return s, err
}

// shown returns the beginning of a value, for messages.
func shown(value json.RawMessage) string {
	const most = 40
	s := string(compact(value))
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// compact returns a value without space between its parts. The values are known to be JSON.
func compact(value json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if err := json.Compact(&out, value); err != nil {
		return value
	}
	return out.Bytes()
}
