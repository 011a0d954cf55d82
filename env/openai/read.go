package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Read reads a file of conversations or preference pairs, a JSON list or JSON lines, and groups them into tasks in the
// order of their first items. The first bad item is an error, and no task is returned. The error names the item's line,
// its index in the file (from 0) and the field.
func Read(data []byte) ([]Task, error) {
	entries, err := split(data)
	if err != nil {
		return nil, fmt.Errorf("read conversations: %w", err)
	}
	if len(entries) == 0 {
		return nil, errors.New("read conversations: the file holds none")
	}
	var items []Item
	for i, e := range entries {
		texts, err := expand(e.text)
		for _, text := range texts {
			var item Item
			if item, err = readItem(text); err != nil {
				break
			}
			item.Index, item.Line = i, e.line
			items = append(items, item)
		}
		if err != nil {
			return nil, fmt.Errorf("read conversations: line %d: item %d: %w", e.line, i, err)
		}
	}
	tasks, err := group(items)
	if err != nil {
		return nil, fmt.Errorf("read conversations: %w", err)
	}
	return tasks, nil
}

// entry is the text of one item and the line where it starts, from 1.
type entry struct {
	line int
	text []byte
}

func split(data []byte) ([]entry, error) {
	n := 0
	for line := range bytes.Lines(data) {
		if n++; !utf8.Valid(line) {
			return nil, fmt.Errorf("line %d: is not UTF-8", n)
		}
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return list(data)
	}
	return lines(data)
}

func lineOf(data []byte, at int) int { return 1 + bytes.Count(data[:at], []byte("\n")) }

// list splits a JSON list into entries.
func list(data []byte) ([]entry, error) {
	if err := syntax(data); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	var out []entry
	line, counted := 1, 0
	for dec.More() {
		var text json.RawMessage
		if err := dec.Decode(&text); err != nil {
			return nil, err
		}
		start := int(dec.InputOffset()) - len(text)
		line += bytes.Count(data[counted:start], []byte("\n"))
		counted = start
		out = append(out, entry{line, text})
	}
	return out, nil
}

// lines splits JSON lines into entries. It skips blank lines.
func lines(data []byte) ([]entry, error) {
	var out []entry
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := syntax(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, errors.Unwrap(err))
		}
		out = append(out, entry{n, line})
	}
	return out, nil
}

// syntax checks that data is one JSON value. An error names the line inside data.
func syntax(data []byte) error {
	var value json.RawMessage
	err := json.Unmarshal(data, &value)
	if err == nil {
		return nil
	}
	line := lineOf(data, len(data))
	var wrong *json.SyntaxError
	if errors.As(err, &wrong) {
		line = lineOf(data, max(0, int(wrong.Offset)-1))
	}
	return fmt.Errorf("line %d: %w", line, err)
}
