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
	Timeout      Status = "timeout"       // the call's own time limit
	OutputLimit  Status = "output_limit"  // the answer would have become too large
)

// The further verdicts on programs, as package sandbox defines them.
const (
	RuntimeError Status = "runtime_error"
	SyntaxError  Status = "syntax_error"
	TimeoutWall  Status = "timeout_wall"
	TimeoutCPU   Status = "timeout_cpu"
	OutOfMemory  Status = "out_of_memory"
	FileLimit    Status = "file_limit"
	ProcessLimit Status = "process_limit"
	Killed       Status = "killed"
)

// Kind groups the statuses for readers that do not know every tool.
type Kind string

// The kinds of verdicts.
const (
	Success  Kind = "success"
	Failure  Kind = "failure"   // what was asked failed
	Rejected Kind = "rejected"  // the arguments were not accepted, and nothing ran
	TimedOut Kind = "timed_out" // ended by a time limit
	Limited  Kind = "limit"     // ended by another limit
)

// verdicts lists the statuses with their kinds.
var verdicts = []struct {
	status Status
	kind   Kind
}{
	{OK, Success},
	{Failed, Failure}, {RuntimeError, Failure}, {SyntaxError, Failure}, {Killed, Failure},
	{BadArguments, Rejected},
	{Timeout, TimedOut}, {TimeoutWall, TimedOut}, {TimeoutCPU, TimedOut},
	{OutputLimit, Limited}, {OutOfMemory, Limited}, {FileLimit, Limited}, {ProcessLimit, Limited},
}

// Kind returns the kind of a verdict; "" if the status is not one.
func (s Status) Kind() Kind {
	for _, v := range verdicts {
		if v.status == s {
			return v.kind
		}
	}
	return ""
}

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
