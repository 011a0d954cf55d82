package zygote

import (
	"github.com/ropewalk/ropewalk/sandbox"
	"golang.org/x/sys/unix"
)

// Causes beyond those of calls.
const (
	causeCPU cause = iota + 100
	causeForged
	causeFiles
)

// Letters that say how a cell ended.
const (
	cellOK      = 'o'
	cellValue   = 'v'
	cellSyntax  = 's'
	cellMemory  = 'm'
	cellFile    = 'f'
	cellProcess = 'p'
	cellRuntime = 'r'
)

var cellStatuses = map[byte]sandbox.Status{cellOK: sandbox.StatusOK, cellValue: sandbox.StatusOK, cellSyntax: sandbox.StatusSyntax,
	cellMemory: sandbox.StatusOutOfMemory, cellFile: sandbox.StatusFileLimit, cellProcess: sandbox.StatusProcessLimit, cellRuntime: sandbox.StatusRuntime}

// ending is everything that a cell's verdict rests on.
type ending struct {
	answered       bool
	silent         bool // the pipes were empty when the answer was there
	kind           byte // one of the letters, if answered
	text           []byte
	peak           int64 // bytes that the interpreter has had resident at most
	files          []sandbox.File
	cause          cause
	wait           *unix.WaitStatus // of the interpreter, if it ended and that was told
	dead           bool             // nothing of the session is left
	stdout, stderr stream
	tooLong        bool // value or traceback beyond the limit
}

// verdict is a pure function of the ending. It is false where the session broke and the cell is not to blame.
func (e ending) verdict() (sandbox.Result, bool) {
	// An end that the interpreter came to by itself stands, though the order to kill it was under way.
	itself := e.wait != nil && !(e.wait.Signaled() && e.wait.Signal() == unix.SIGKILL)
	killed := sandbox.Result{ExitCode: -1, Signal: "SIGKILL"}
	switch {
	case e.stdout.overflow, e.stderr.overflow, e.tooLong:
		return outcome{stdout: e.stdout, stderr: e.stderr}.tooMuch(), true
	case e.cause == causeFiles:
		killed.Status = sandbox.StatusFileLimit
		return killed, true
	case e.cause == causeCPU && !itself:
		killed.Status = sandbox.StatusTimeoutCPU
		return killed, true
	case e.cause == causeWall && !itself:
		killed.Status = sandbox.StatusTimeoutWall
		return killed, true
	case e.answered:
		return e.told(), true
	case e.wait != nil, e.cause == causeForged:
		return e.exited(), true
	default:
		return sandbox.Result{}, false
	}
}

// told is the verdict on a cell that answered.
func (e ending) told() sandbox.Result {
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

// exited is the verdict on a cell that ended its interpreter.
func (e ending) exited() sandbox.Result {
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
