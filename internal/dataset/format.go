package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/internal/refusal"
)

// Format says which fields the rows of a source have. Other fields are ignored.
type Format struct {
	Required []string // fields that each row has; neither null nor blank
	Optional []string
	ID       string   // the optional field that names a row; no two rows of a source have the same id
	Key      []string // the fields whose texts are the row's key
	Many     []string // the fields that may be lists of texts
	Shapes   []Shape  // that are recognised, in the order in which they are tried
	Answered bool     // a row's answer may be in another file, in a folder possible_answer (BFCL)
}

func (f Format) names() []string { return append(append([]string(nil), f.Required...), f.Optional...) }

// Row is one row of a source.
type Row struct {
	File   string
	Number int
	Values map[string]string   // texts by field, without those that are missing, null or blank
	Lists  map[string][]string // the texts of the fields that may be lists
	Cells  map[string]any      // the values of the columns that were read (see cells)
	Set    string              // of the evaluation set, if there are several
	Shape  string              // name of the recognised shape of the file; "" = none
}

// Fault returns the fault of the row.
func (r Row) Fault(format string, args ...any) *Fault {
	return &Fault{File: r.File, Row: r.Number, Text: fmt.Sprintf(format, args...)}
}

// Fault is the error for a bad file or row.
type Fault struct {
	File string // path or address
	Row  int    // 0 means the whole file
	Text string // what is wrong
}

// Error names file and row.
func (f *Fault) Error() string {
	if f.Row == 0 {
		return f.File + ": " + f.Text
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Row, f.Text)
}

// Unwrap returns a refusal, because no retry makes a bad file good.
func (f *Fault) Unwrap() error { return refusal.Unusablef("%s", f.Error()) }

// faultf returns the fault of a whole file.
func faultf(file, format string, args ...any) *Fault {
	return &Fault{File: file, Text: fmt.Sprintf(format, args...)}
}

// set takes a field's text.
func (r Row) set(name, text string) error {
	if at := firstInvalid(text); at >= 0 {
		return r.Fault("%s: byte %d is not UTF-8", name, at)
	}
	if strings.TrimSpace(text) != "" {
		r.Values[name] = text
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

// cellsOf reads one line of JSON Lines.
func cellsOf(r Row, line []byte) (cells, error) {
	if at := firstInvalid(string(line)); at >= 0 {
		return nil, r.Fault("byte %d is not UTF-8", at)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		if trimmed := bytes.TrimSpace(line); json.Valid(trimmed) {
			return nil, r.Fault("is not a JSON object: it begins with %.1q", trimmed)
		}
		return nil, r.Fault("is not a JSON object: %v", err)
	}
	out := cells{}
	for name, raw := range fields {
		if v := cellOf(string(raw)); v != nil {
			out[name] = v
		}
	}
	return out, nil
}

// cellOf decodes a value. The decoder replaces an escape that is half a character.
func cellOf(raw string) any {
	v, err := decoded(raw)
	if err != nil {
		return err
	}
	text, _ := v.(string)
	if n := strings.Count(text, "\uFFFD"); n > 0 && n > strings.Count(raw, "\uFFFD")+
		strings.Count(strings.ToLower(raw), `\ufffd`) {
		return errors.New("holds an escape that is half a character")
	}
	return v
}
