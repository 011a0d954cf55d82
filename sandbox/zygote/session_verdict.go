package zygote

import (
	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/syscalls"
)

// Causes that only cells have.
const (
	causeCPU cause = iota + 100
	causeForged
	causeFiles
)

// Letters that say how a cell ended.
const (
	cellOK        = 'o'
	cellValue     = 'v'
	cellSyntax    = 's'
	cellMemory    = 'm'
	cellFile      = 'f'
	cellProcess   = 'p'
	cellInterrupt = 'i'
	cellRuntime   = 'r'
)

var cellStatuses = map[byte]sandbox.Status{cellOK: sandbox.StatusOK, cellValue: sandbox.StatusOK,
	cellSyntax: sandbox.StatusSyntax,
	cellMemory: sandbox.StatusOutOfMemory, cellFile: sandbox.StatusFileLimit, cellProcess: sandbox.StatusProcessLimit,
	cellInterrupt: sandbox.StatusRuntime, cellRuntime: sandbox.StatusRuntime}

// ending holds everything that a cell's verdict depends on.
type ending struct {
	answered       bool
	silent         bool // the pipes were empty when the answer arrived
	kind           byte // how the cell ended, if it answered
	text           []byte
	peak           int64 // most resident memory of the interpreter in bytes
	files          []sandbox.File
	cause          cause
	wait           *unix.WaitStatus // status of the interpreter, if its end was reported
	gone           bool             // all processes of the session have ended
	own            bool             // the code may have caused a signal that the parent did not send
	memory         bool             // the session's control group has run out of memory
	stdout, stderr stream
	tooLong        bool // the value or traceback exceeds the limit
}

// verdict is a pure function of the ending. It returns false if the session broke and the cell is not to blame.
func (e ending) verdict() (sandbox.Result, bool) {
	// If the interpreter ended by itself, that end counts, even if the parent was about to kill it.
	sigkilled := e.wait != nil && e.wait.Signaled() && e.wait.Signal() == unix.SIGKILL
	byItself := e.wait != nil && !sigkilled
	killed := sandbox.Result{ExitCode: -1, Signal: "SIGKILL"}
	switch {
	case e.stdout.overflow, e.stderr.overflow, e.tooLong:
		return outcome{stdout: e.stdout, stderr: e.stderr}.tooMuch(), true
	case e.cause == causeFiles:
		killed.Status = sandbox.StatusFileLimit
		return killed, true
	case e.cause == causeCPU && !byItself:
		killed.Status = sandbox.StatusTimeoutCPU
		return killed, true
	case e.cause == causeWall && !byItself:
		killed.Status = sandbox.StatusTimeoutWall
		return killed, true
	case e.answered:
		return e.answerVerdict(), true
	case e.memory && !byItself:
		killed.Status = sandbox.StatusOutOfMemory
		return killed, true
	case e.cause == causeNone && !e.own && fromOutside(e.wait):
		return sandbox.Result{}, false
	case e.wait != nil, e.cause == causeForged:
		return e.exitVerdict(), true
	default:
		return sandbox.Result{}, false
	}
}

// fromOutside reports whether an interpreter was ended by a signal that comes from outside of the sandbox unless the
// code has caused it. The kernel's own signals count as the code's: a session cannot run a cell again.
func fromOutside(wait *unix.WaitStatus) bool {
	return wait != nil && wait.Signaled() && !syscalls.FromKernel.Has(wait.Signal())
}

// answerVerdict returns the verdict on a cell that answered.
func (e ending) answerVerdict() sandbox.Result {
	r := e.streams()
	r.Status, r.Files = cellStatuses[e.kind], e.files
	switch e.kind {
	case cellOK:
	case cellValue:
		r.Value = text(e.text)
	default:
		r.ExitCode, r.Traceback = 1, text(e.text)
	}
	return r
}

// exitVerdict returns the verdict on a cell that ended its interpreter.
func (e ending) exitVerdict() sandbox.Result {
	r := e.streams()
	switch {
	case e.wait == nil:
		r.Status, r.ExitCode, r.Signal = sandbox.StatusKilled, -1, "SIGKILL"
	case e.wait.Signaled():
		r.Status, r.ExitCode, r.Signal = sandbox.StatusKilled, -1, unix.SignalName(e.wait.Signal())
	case e.wait.ExitStatus() == 0:
		r.Status = sandbox.StatusOK
	default:
		r.Status, r.ExitCode = sandbox.StatusRuntime, e.wait.ExitStatus()
	}
	return r
}

func (e ending) streams() sandbox.Result {
	return sandbox.Result{Stdout: text(e.stdout.bytes), Stderr: text(e.stderr.bytes)}
}
