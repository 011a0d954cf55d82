package zygote

import (
	"regexp"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
	"golang.org/x/sys/unix"
)

// Letters that a child puts first on its control pipe.
const (
	kindStarted = 'S' // set up; from here on the code is to blame
	kindSyntax  = 's'
	kindMemory  = 'm'
	kindValue   = 'v'
)

// cause says why the parent ended a call, if it did.
type cause int32

const (
	causeNone cause = iota
	causeWall
	causeOutput
	causeCancel
)

// outcome is everything that a verdict rests on.
type outcome struct {
	wait           unix.WaitStatus // as the zygote reaped it
	cpu            time.Duration
	cause          cause
	stdout, stderr stream
	control        stream
}

// stream is what arrived on one pipe, up to its limit.
type stream struct {
	bytes    []byte
	overflow bool
}

// started reports whether the child got as far as the code.
func (o outcome) started() bool {
	return len(o.control.bytes) > 0 && o.control.bytes[0] == kindStarted
}

// record returns the child's own description: a letter and text.
func (o outcome) record() (kind byte, text string) {
	if len(o.control.bytes) < 2 {
		return 0, ""
	}
	return o.control.bytes[1], string(o.control.bytes[2:])
}

// verdict is a pure function of the outcome and the limits that the call ran under.
func (o outcome) verdict(limits sandbox.Limits) sandbox.Result {
	result := sandbox.Result{ExitCode: -1, Stdout: text(o.stdout.bytes), Stderr: text(o.stderr.bytes)}
	switch {
	case o.stdout.overflow, o.stderr.overflow, o.control.overflow:
		return o.tooMuch()
	case o.wait.Signaled():
		result.Signal = unix.SignalName(o.wait.Signal())
		result.Status = o.signalled(limits)
	case o.wait.ExitStatus() == 0:
		result.ExitCode = 0
		result.Status = sandbox.StatusOK
		if kind, value := o.record(); kind == kindValue {
			result.Value = text([]byte(value))
		}
	default:
		result.ExitCode = o.wait.ExitStatus()
		result.Status = o.failure()
	}
	if result.Status == sandbox.StatusTimeoutCPU || result.Status == sandbox.StatusTimeoutWall {
		result.Stdout, result.Stderr = "", ""
	}
	return result
}

// tooMuch keeps the stream that overflowed: how much of the other arrived before the child was
// killed is chance, and so is whether it was killed or got to its end.
func (o outcome) tooMuch() sandbox.Result {
	result := sandbox.Result{Status: sandbox.StatusOutputLimit, ExitCode: -1, Signal: "SIGKILL"}
	switch {
	case o.stdout.overflow:
		result.Stdout = text(o.stdout.bytes)
	case o.stderr.overflow:
		result.Stderr = text(o.stderr.bytes)
	}
	return result
}

// signalled tells the kernel's CPU limit and the parent's wall limit from other signals. The
// CPU time must bear the limit out, for code can send SIGXCPU to itself; half is enough, since
// the kernel enforces the limit by sampled ticks and reports time more exactly.
func (o outcome) signalled(limits sandbox.Limits) sandbox.Status {
	signal := o.wait.Signal()
	spent := o.cpu >= wholeSeconds(limits.CPU)/2
	switch {
	case spent && (signal == unix.SIGXCPU || signal == unix.SIGKILL && o.cause == causeNone):
		return sandbox.StatusTimeoutCPU
	case signal == unix.SIGKILL && o.cause == causeWall:
		return sandbox.StatusTimeoutWall
	default:
		return sandbox.StatusKilled
	}
}

func (o outcome) failure() sandbox.Status {
	switch kind, _ := o.record(); kind {
	case kindSyntax:
		return sandbox.StatusSyntax
	case kindMemory:
		return sandbox.StatusOutOfMemory
	default:
		return sandbox.StatusRuntime
	}
}

// wholeSeconds rounds up to what RLIMIT_CPU can express.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1) / time.Second * time.Second
}

// address matches one in a default representation, such as <function f at 0x7ffff7bd8a00>.
// Memory that the interpreter maps has twelve digits on every 64-bit Linux.
var address = regexp.MustCompile(` at 0x[0-9a-f]{12}\b`)

// text makes what a call wrote fit to show: UTF-8, without addresses.
func text(b []byte) string {
	return strings.ToValidUTF8(string(address.ReplaceAll(b, []byte(" at 0x000000000000"))), "\uFFFD")
}
