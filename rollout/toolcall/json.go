package toolcall

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// spaces are what may be between the parts of a call.
const spaces = " \t\r\n"

// object decodes a JSON object. twice is a key that it has twice.
func object(raw string) (fields map[string]json.RawMessage, twice string, ok bool) {
	if json.Unmarshal([]byte(raw), &fields) != nil || fields == nil {
		return nil, "", false
	}
	seen := map[string]bool{}
	for _, f := range fieldsOf(raw) {
		if seen[f.name] {
			twice = f.name
		}
		seen[f.name] = true
	}
	return fields, twice, true
}

// value returns the JSON value that a text begins with, and its length; 0 if there is none. cut says that the text ends
// inside a value.
func value(text string) (raw string, n int, cut bool) {
	d := json.NewDecoder(strings.NewReader(text))
	var v json.RawMessage
	if err := d.Decode(&v); err != nil {
		return "", 0, errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
	}
	return string(v), int(d.InputOffset()), false
}

// begunObject returns the JSON object that a text begins with, which the text may end inside of.
func begunObject(text string) string {
	depth, inside := 0, false
	if !strings.HasPrefix(text, "{") {
		return ""
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case inside:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth <= 0 {
				return text[:i+1]
			}
		}
	}
	return text
}

// Quote writes a text as a JSON string.
func Quote(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a text can always be written
	return strings.TrimSuffix(b.String(), "\n")
}

// field is an argument with its JSON value.
type field struct{ name, value string }

// fieldsOf lists the fields of a JSON object in their order.
func fieldsOf(raw string) (out []field) {
	d := json.NewDecoder(strings.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		key, err := d.Token()
		var v json.RawMessage
		if err != nil || d.Decode(&v) != nil {
			return out
		}
		out = append(out, field{key.(string), string(v)})
	}
	return out
}

// unquoted returns the text of a JSON string, and any other value as it is.
func unquoted(value string) (s string, text bool) {
	if strings.HasPrefix(value, `"`) && json.Unmarshal([]byte(value), &s) == nil {
		return s, true
	}
	return value, false
}
