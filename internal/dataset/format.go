package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/schema/foreign"
)

// Format says which fields the rows of a source have. Other fields are ignored.
type Format struct {
	Required []string // fields that each row has; neither null nor blank
	Optional []string
	ID       string   // the optional field that names a row; no two rows of a source have the same id
	Key      []string // the fields whose texts are the row's key
}

func (f Format) names() []string { return append(append([]string(nil), f.Required...), f.Optional...) }

// Row is one row of a source.
type Row struct {
	File   string
	Number int
	Values map[string]string // texts by field, without those that are missing, null or blank
}

// Fault returns the fault of the row.
func (r Row) Fault(kind Kind, format string, args ...any) *Fault {
	return &Fault{File: r.File, Row: r.Number, Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// set takes a field's text.
func (r Row) set(name, text string) error {
	if at := firstInvalid(text); at >= 0 {
		return r.Fault(NotUTF8, "%s: byte %d is not UTF-8", name, at)
	}
	if strings.TrimSpace(text) != "" {
		r.Values[name] = text
	}
	return nil
}

// check refuses a row that lacks a required field.
func (f Format) check(r Row) error {
	for _, name := range f.Required {
		if _, ok := r.Values[name]; !ok {
			return r.Fault(Missing, "%s is missing or blank", name)
		}
	}
	return nil
}

// firstInvalid returns the offset of the first byte that is not UTF-8, or −1.
func firstInvalid(text string) int {
	if utf8.ValidString(text) {
		return -1
	}
	for i, c := range text {
		if c == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(text[i:]); n == 1 {
				return i
			}
		}
	}
	return -1
}

// parse reads one line.
func (f Format) parse(r Row, line []byte) error {
	if at := firstInvalid(string(line)); at >= 0 {
		return r.Fault(NotUTF8, "byte %d is not UTF-8", at)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		if trimmed := bytes.TrimSpace(line); json.Valid(trimmed) {
			return r.Fault(Unreadable, "is not a JSON object: it begins with %.1q", trimmed)
		}
		return r.Fault(Unreadable, "is not a JSON object: %v", err)
	}
	for _, name := range f.names() {
		raw, ok := fields[name]
		if !ok {
			continue
		}
		text, err := textOf(raw)
		if err != nil {
			return r.Fault(BadField, "%s %v", name, err)
		}
		if err := r.set(name, text); err != nil {
			return err
		}
	}
	return f.check(r)
}

// textOf returns the text of a JSON value: a string, or a number as it is written but without an exponent. It is "" for
// null.
func textOf(raw json.RawMessage) (string, error) {
	switch c := raw[0]; {
	case c == '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", err
		}
		// the decoder replaces an escape that is half a character
		if strings.Count(text, "\uFFFD") > strings.Count(string(raw), "\uFFFD")+
			strings.Count(strings.ToLower(string(raw)), `\ufffd`) {
			return "", fmt.Errorf("holds an escape that is half a character")
		}
		return text, nil
	case c == '-' || c >= '0' && c <= '9':
		return foreign.Decimal(string(raw))
	case string(raw) == "null":
		return "", nil
	}
	return "", fmt.Errorf("must be text or a number, got %.20s", raw)
}
