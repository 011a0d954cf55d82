package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// object is a JSON object whose keys match exactly, at a path of an item: messages[4].tool_calls[0]. Its methods panic
// with a faultError where the object is not what they read.
type object struct {
	path   string
	fields map[string]json.RawMessage
}

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

// catch turns the panic of an object's method into an error.
func catch(err *error) {
	switch fault := recover().(type) {
	case nil:
	case *faultError:
		*err = fault
	default:
		panic(fault)
	}
}

// readObject reads a value that must be an object.
func readObject(path string, value json.RawMessage) object {
	o := object{path: path}
	if err := json.Unmarshal(value, &o.fields); err != nil || o.fields == nil {
		panic(fault(path, "must be an object, got %s", shown(value)))
	}
	return o
}

// readList reads a value that must be a list.
func readList(path string, value json.RawMessage) (l []json.RawMessage) {
	if err := json.Unmarshal(value, &l); err != nil || l == nil {
		panic(fault(path, "must be a list, got %s", shown(value)))
	}
	return l
}

// at returns the path of a field.
func (o object) at(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

// has reports whether a field is present and not null.
func (o object) has(name string) bool {
	value, ok := o.fields[name]
	return ok && string(value) != "null"
}

// need returns a field that must be present.
func (o object) need(name string) json.RawMessage {
	if !o.has(name) {
		panic(fault(o.at(name), "is missing"))
	}
	return o.fields[name]
}

// text reads a field that must be a string.
func (o object) text(name string) (s string) {
	value := o.need(name)
	if err := json.Unmarshal(value, &s); err != nil {
		panic(fault(o.at(name), "must be text, got %s", shown(value)))
	}
	return s
}

// name reads a text that must not be empty.
func (o object) name(field string) string {
	s := o.text(field)
	if s == "" {
		panic(fault(o.at(field), "must not be empty"))
	}
	return s
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
