package sandbox

import (
	"errors"
	"fmt"
)

// Status is the type of a verdict on one call. It is never guessed from text.
type Status string

// The verdicts.
const (
	StatusOK           Status = "ok"
	StatusRuntime      Status = "runtime_error"
	StatusSyntax       Status = "syntax_error"
	StatusTimeoutWall  Status = "timeout_wall"
	StatusTimeoutCPU   Status = "timeout_cpu"
	StatusOutOfMemory  Status = "out_of_memory"
	StatusOutputLimit  Status = "output_limit"
	StatusFileLimit    Status = "file_limit"    // a file, or the work folder, would have become too large
	StatusProcessLimit Status = "process_limit" // one process or thread too many
	StatusKilled       Status = "killed"
)

// Statuses of breakage, for protocols that send an error as a status. Neither is ever a verdict.
const (
	StatusQueueTimeout   Status = "queue_timeout"
	StatusInfrastructure Status = "infrastructure"
)

// Statuses returns all statuses, the verdicts first.
func Statuses() []Status {
	return []Status{StatusOK, StatusRuntime, StatusSyntax, StatusTimeoutWall, StatusTimeoutCPU, StatusOutOfMemory,
		StatusOutputLimit,
		StatusFileLimit, StatusProcessLimit, StatusKilled, StatusQueueTimeout, StatusInfrastructure}
}

// Failed reports whether the verdict counts as a tool error.
func (s Status) Failed() bool { return s != StatusOK }

// Breakage reports whether the status means an error and not a verdict.
func (s Status) Breakage() bool { return s == StatusQueueTimeout || s == StatusInfrastructure }

// Errors that mean breakage.
var (
	// ErrNoPython means that the sandbox found no interpreter that it can use.
	ErrNoPython = errors.New("no usable python interpreter")
	// ErrInfrastructure means that the sandbox itself failed. The code is not to blame.
	ErrInfrastructure = errors.New("sandbox broke")
	// ErrQueueTimeout means that the call waited longer than its queue life and did not run.
	ErrQueueTimeout = errors.New("call waited too long for a free place")
	// ErrSessionLost means that the session and its variables are gone.
	ErrSessionLost = errors.New("session lost")
	// ErrSessionEnded is an ErrSessionLost that the session caused itself: a cell exited or was killed, or the
	// interpreter ended between cells. Replaying the session's cells would end it again.
	ErrSessionEnded = fmt.Errorf("%w: it has ended", ErrSessionLost)
	// ErrBadCall means that the call is malformed. The caller can correct the call; running it again does not help.
	ErrBadCall = errors.New("bad call")
)
