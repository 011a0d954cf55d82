package dataset

import (
	"fmt"

	"github.com/ropewalk/ropewalk/internal/refusal"
)

// Kind says what is wrong with a file or a row.
type Kind string

// The kinds of faults.
const (
	TooLarge   Kind = "too_large"   // the source has more bytes than the recipe accepts
	TooLong    Kind = "too_long"    // the row has more bytes than the recipe accepts
	NotUTF8    Kind = "not_utf8"    // the row is not UTF-8
	Unreadable Kind = "unreadable"  // the file or the row is not of its format
	Missing    Kind = "missing"     // the row lacks a field
	BadField   Kind = "bad_field"   // a field of the row cannot be used
	Duplicate  Kind = "duplicate"   // an earlier row has the same id, or is the same task
	Empty      Kind = "empty"       // the source holds no rows
	OtherBytes Kind = "other_bytes" // the source's digest is not the recipe's
)

// Fault is the error for a bad file or row.
type Fault struct {
	File string // path or address
	Row  int    // 0 means the whole file
	Kind Kind
	Text string
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
func faultf(file string, kind Kind, format string, args ...any) *Fault {
	return &Fault{File: file, Kind: kind, Text: fmt.Sprintf(format, args...)}
}
