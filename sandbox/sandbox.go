// Package sandbox runs code that a model wrote. A *call* is one program with its input and
// limits; a *verdict* is what became of it. Verdicts are data: a wrong program, a time-out or
// too much output are results with a Status. Breakage (no interpreter, a lost zygote, no room)
// is an error and never a verdict.
package sandbox

import (
	"context"
	"errors"
	"time"
)

// Sentinels of breakage, at the package's edge.
var (
	// ErrNoPython: there is no interpreter that the sandbox can use.
	ErrNoPython = errors.New("no usable python interpreter")
	// ErrInfrastructure: the sandbox itself failed; the code it was given is not to blame.
	ErrInfrastructure = errors.New("sandbox broke")
)

// Status is the typed verdict on one call; it is never guessed from text.
type Status string

// The verdicts.
const (
	StatusOK          Status = "ok"
	StatusRuntime     Status = "runtime_error"
	StatusSyntax      Status = "syntax_error"
	StatusTimeoutWall Status = "timeout_wall"
	StatusTimeoutCPU  Status = "timeout_cpu"
	StatusOutOfMemory Status = "out_of_memory"
	StatusOutputLimit Status = "output_limit"
	StatusKilled      Status = "killed"
)

// Failed reports whether the verdict counts as a tool error.
func (s Status) Failed() bool { return s != StatusOK }

// Limits bound one call.
type Limits struct {
	CPU         time.Duration // RLIMIT_CPU granularity is one second; rounded up
	Wall        time.Duration // ≥ 10 × CPU, so that no verdict depends on load
	MemoryBytes int64
	OutputBytes int // of stdout and of stderr each
}

// DefaultLimits bound a call that names none. Wall is 10 × CPU, as the contract of Limits asks.
var DefaultLimits = Limits{
	CPU:         2 * time.Second,
	Wall:        20 * time.Second,
	MemoryBytes: 256 << 20,
	OutputBytes: 64 << 10,
}

// OrDefault replaces each limit that is not set by the default one; a wall limit that is not
// set follows the CPU limit at ten times its length.
func (l Limits) OrDefault() Limits {
	if l.CPU <= 0 {
		l.CPU = DefaultLimits.CPU
	}
	if l.Wall <= 0 {
		l.Wall = 10 * l.CPU
	}
	if l.MemoryBytes <= 0 {
		l.MemoryBytes = DefaultLimits.MemoryBytes
	}
	if l.OutputBytes <= 0 {
		l.OutputBytes = DefaultLimits.OutputBytes
	}
	return l
}

// Call is one stateless execution of Python source.
type Call struct {
	Code   string
	Stdin  string
	Limits Limits
}

// Result is a call's verdict. Only Timing depends on anything but the call.
type Result struct {
	Status Status
	// ExitCode is the exit status, or −1 when a signal ended the process.
	ExitCode int
	Signal   string // "" or e.g. "SIGKILL"
	Stdout   string
	Stderr   string // traceback included; file name fixed, no addresses or temporary names
	// Value is the last expression's value as IPython shows it, when stdout does not hold it; "" if none.
	Value  string
	Timing Timing
}

// Timing is measured, and belongs in the timings table alone.
type Timing struct {
	Queue time.Duration
	Wall  time.Duration
	CPU   time.Duration
}

// Executor runs calls, several at once, and returns results in the order of calls.
// An error means breakage. Where it holds CallErrors (errors.As), these say which calls have no
// verdict, and the results of the others stand; after any other error no result of the batch may
// be used. Safe for concurrent use.
// Whoever opened it closes it; Close ends every process it started.
type Executor interface {
	Run(ctx context.Context, calls []Call) ([]Result, error)
	Close() error
}
