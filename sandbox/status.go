package sandbox

import (
	"context"
	"errors"
	"fmt"
)

// Status is the typed verdict on one call; it is never guessed from text.
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
	StatusFileLimit    Status = "file_limit"    // a file, or the work folder, would have grown too large
	StatusProcessLimit Status = "process_limit" // one process or thread too many
	StatusKilled       Status = "killed"
)

// Breakage on the wire: where an error must travel as a status. Neither is ever a verdict.
const (
	StatusQueueTimeout   Status = "queue_timeout"
	StatusInfrastructure Status = "infrastructure"
)

// Statuses are all of them, the verdicts first.
func Statuses() []Status {
	return []Status{StatusOK, StatusRuntime, StatusSyntax, StatusTimeoutWall, StatusTimeoutCPU, StatusOutOfMemory, StatusOutputLimit,
		StatusFileLimit, StatusProcessLimit, StatusKilled, StatusQueueTimeout, StatusInfrastructure}
}

// Failed reports whether the verdict counts as a tool error.
func (s Status) Failed() bool { return s != StatusOK }

// Breakage reports whether the status stands for an error and not for a verdict.
func (s Status) Breakage() bool { return s == StatusQueueTimeout || s == StatusInfrastructure }

// Sentinels of breakage, at the package's edge.
var (
	// ErrNoPython: there is no interpreter that the sandbox can use.
	ErrNoPython = errors.New("no usable python interpreter")
	// ErrInfrastructure: the sandbox itself failed; the code it was given is not to blame.
	ErrInfrastructure = errors.New("sandbox broke")
	// ErrQueueTimeout: the call waited longer than its queue life; it did not run.
	ErrQueueTimeout = errors.New("call waited too long for a free place")
	// ErrSessionLost: the session has ended, and its variables with it.
	ErrSessionLost = errors.New("session lost")
	// ErrSessionEnded is an ErrSessionLost of the session's own doing: a cell exited or was killed, or the interpreter
	// ended between cells. Making the session anew by running its cells again would end it again.
	ErrSessionEnded = fmt.Errorf("%w: it has ended", ErrSessionLost)
	// ErrBadCall: the call is malformed; whoever made it can mend it, running it again cannot.
	ErrBadCall = errors.New("bad call")
)

// StatusOf names a breakage for the wire. ErrBadCall and an ended context have no status: "".
func StatusOf(err error) Status {
	switch {
	case err == nil, errors.Is(err, ErrBadCall), errors.Is(err, context.Canceled):
		return ""
	case errors.Is(err, ErrQueueTimeout):
		return StatusQueueTimeout
	default:
		return StatusInfrastructure
	}
}
