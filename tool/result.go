package tool

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Result is the verdict on a call.
type Result struct {
	Status   Status
	ExitCode int    // of a program; otherwise 0
	Stdout   string // what the tool answers
	Stderr   string // what went wrong, in words for the policy
	Value    string // value of a program's last expression, if the program printed nothing
	Timing   Timing
}

// Timing is measured, so it belongs only in the timings table.
type Timing struct {
	Queue time.Duration // before the call ran
	Wall  time.Duration
	CPU   time.Duration
	// Shared is true if the result is that of an identical call, which has the times.
	Shared bool
}

// Untimed returns the result without what was measured.
func (r Result) Untimed() Result {
	r.Timing = Timing{}
	return r
}

// Status is the type of a verdict. It is never guessed from text.
type Status string

// The verdicts of all tools.
const (
	OK           Status = "ok"
	Failed       Status = "tool_error"    // the tool did what was asked, and that failed
	BadArguments Status = "bad_arguments" // the schema rejects the arguments; Stderr names the argument
	OutputLimit  Status = "output_limit"  // the answer would have become too large
)

// RuntimeError is a verdict on programs, as package sandbox defines it.
const RuntimeError Status = "runtime_error"

// verdicts lists the statuses of all tools, then the further ones of programs.
var verdicts = []Status{OK, Failed, BadArguments, OutputLimit, "timeout", RuntimeError, "syntax_error", "timeout_wall",
	"timeout_cpu", "out_of_memory", "file_limit", "process_limit", "killed"}

// IsVerdict reports whether a call can end with the status.
func (s Status) IsVerdict() bool { return slices.Contains(verdicts, s) }

// ErrUnknownOutcome means that an earlier attempt began a call that must not run twice, and that no one knows whether
// it ran. Running it again, or waiting, does not help.
var ErrUnknownOutcome = errors.New("the outcome of the call is unknown: it was begun and has no result")

// CallErrors says which calls of a batch broke. It has one entry per call, which is nil if the call's result is valid.
type CallErrors []error

// Error returns the first breakage and how many there are.
func (e CallErrors) Error() string {
	broken := e.Unwrap()
	if len(broken) == 0 {
		return "no call broke"
	}
	return fmt.Sprintf("%d of %d calls broke: %v", len(broken), len(e), broken[0])
}

// Unwrap returns the breakages.
func (e CallErrors) Unwrap() []error {
	return slices.DeleteFunc(slices.Clone([]error(e)), func(err error) bool { return err == nil })
}

// OrNil returns e as an error, or nil if no call broke.
func (e CallErrors) OrNil() error {
	if len(e.Unwrap()) == 0 {
		return nil
	}
	return e
}

// Outcome is the result of one call: a verdict, or the breakage that prevented one.
type Outcome struct {
	Result
	Broken error // nil if Result is a verdict
}
