package dataset

import (
	"fmt"

	"github.com/ropewalk/ropewalk/internal/refusal"
)

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
