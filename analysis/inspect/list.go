package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// List describes a JSON list, or a file of JSON lines, and holds its first items.
type List struct {
	Items int               `json:"items"`
	First []json.RawMessage `json:"first"`
}

// readList reads a JSON list or several JSON values in a row. It returns nil for a file with a single other value.
func readList(data []byte, rows int) (*List, error) {
	var items []json.RawMessage
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("[")) {
		if err := json.Unmarshal(data, &items); err != nil {
			return nil, fmt.Errorf("is not a JSON list: %w", err)
		}
	} else {
		d := json.NewDecoder(bytes.NewReader(data))
		for {
			var item json.RawMessage
			err := d.Decode(&item)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil && len(items) < 1 {
				return nil, nil // the caller says what is wrong with the only value
			}
			if err != nil {
				return nil, fmt.Errorf("line %d: is not JSON: %w", lineAt(data, d.InputOffset()), err)
			}
			items = append(items, item)
		}
		if len(items) < 2 {
			return nil, nil
		}
	}
	return &List{Items: len(items), First: append([]json.RawMessage{}, items[:min(rows, len(items))]...)}, nil
}

// lineAt returns the number, from 1, of the line of the value that follows an offset.
func lineAt(data []byte, offset int64) int {
	rest := data[offset:]
	skipped := len(rest) - len(bytes.TrimLeft(rest, " \t\r\n"))
	return 1 + bytes.Count(data[:int(offset)+skipped], []byte("\n"))
}
