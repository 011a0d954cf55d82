package zygote

import (
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/syscalls"
)

// Kinds of a child's record.
const (
	kindSyntax    = 's'
	kindMemory    = 'm'
	kindFile      = 'f'
	kindProcess   = 'p'
	kindInterrupt = 'i' // a KeyboardInterrupt that nothing has caught
	kindValue     = 'v'
	kindLongValue = 'o'
)

// cause says why the parent ended a call, if it did.
type cause int32

const (
	causeNone cause = iota
	causeWall
	causeOutput
	causeCancel
	causePreempted
	causeStopped // something outside has stopped it for too long
)

// outcome holds everything that a verdict depends on.
type outcome struct {
	reply          // the zygote's report on the child
	cause          cause
	memory         bool // the control group has run out of memory
	own            bool // the code asked for the signal that ended it, or may have
	stdout, stderr stream
}

// endSignal returns the signal that decides the outcome; 0 if there is none. SIGINT counts as such if Python has turned
// it into an exception, which it does once the code has installed a handler, as asyncio.run does.
func (o outcome) endSignal() unix.Signal {
	switch {
	case o.wait.Signaled():
		return o.wait.Signal()
	case o.kind == kindInterrupt && o.wait.ExitStatus() != 0:
		return unix.SIGINT
	}
	return 0
}

// unexplained reports whether a signal decides the outcome that neither the parent, nor the code, nor a limit has sent.
func (o outcome) unexplained() bool {
	return o.endSignal() != 0 && o.cause == causeNone && !o.memory && !o.own && o.flags&flagCPULimit == 0 &&
		!o.stdout.overflow && !o.stderr.overflow
}

// fromOutside reports whether the signal came from outside of the sandbox. Then the call is not to blame and has no
// verdict.
func (o outcome) fromOutside() bool {
	return o.unexplained() && o.wait.Signaled() && !syscalls.FromKernel.Has(o.wait.Signal())
}

// doubtful reports whether the signal may have come from outside. Code can raise a KeyboardInterrupt too.
func (o outcome) doubtful() bool { return o.unexplained() && !o.fromOutside() }

// stream holds what arrived on one pipe, up to its limit.
type stream struct {
	bytes    []byte
	overflow bool
}

// verdict is a pure function of the outcome and the limits that the call ran under.
func (o outcome) verdict(limits sandbox.Limits) sandbox.Result {
	result := sandbox.Result{ExitCode: -1, Stdout: text(o.stdout.bytes), Stderr: text(o.stderr.bytes)}
	switch {
	case o.stdout.overflow, o.stderr.overflow, o.kind == kindLongValue, o.kind == kindValue &&
		len(o.record) > limits.OutputBytes:
		return o.tooMuch()
	case o.flags&flagTooMuch != 0:
		result.Status = sandbox.StatusFileLimit
	case o.wait.Signaled():
		result.Signal = unix.SignalName(o.wait.Signal())
		result.Status = o.signalled(limits)
	case o.wait.ExitStatus() == 0:
		result.ExitCode = 0
		result.Status = sandbox.StatusOK
		if o.kind == kindValue {
			result.Value = text([]byte(o.record))
		}
	default:
		result.ExitCode = o.wait.ExitStatus()
		result.Status = o.failure()
		if o.kind != kindValue {
			result.Traceback = text([]byte(o.record))
		}
	}
	if result.Status == sandbox.StatusTimeoutCPU || result.Status == sandbox.StatusTimeoutWall {
		result.Stdout, result.Stderr = "", ""
	}
	return result
}

// tooMuch keeps the stream that overflowed. How much of the other stream arrived before the child was killed is a
// matter of chance, and so is whether the child was killed or finished first.
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

// signalled distinguishes the kernel's CPU limit and the parent's wall limit from other signals. The CPU time must
// confirm the limit, because code can send SIGXCPU to itself. Half of the limit is enough, since the kernel enforces
// the limit by sampled ticks but reports exact times.
func (o outcome) signalled(limits sandbox.Limits) sandbox.Status {
	signal := o.wait.Signal()
	spent := o.cpu >= wholeSeconds(limits.CPU)/2
	switch {
	case o.memory:
		return sandbox.StatusOutOfMemory
	case spent && (signal == unix.SIGXCPU || signal == unix.SIGKILL && o.cause == causeNone):
		return sandbox.StatusTimeoutCPU
	case signal == unix.SIGKILL && o.cause == causeWall:
		return sandbox.StatusTimeoutWall
	case signal == unix.SIGXFSZ:
		return sandbox.StatusFileLimit
	default:
		return sandbox.StatusKilled
	}
}

func (o outcome) failure() sandbox.Status {
	switch o.kind {
	case kindSyntax:
		return sandbox.StatusSyntax
	case kindMemory:
		return sandbox.StatusOutOfMemory
	case kindFile:
		return sandbox.StatusFileLimit
	case kindProcess:
		return sandbox.StatusProcessLimit
	default:
		return sandbox.StatusRuntime
	}
}

// wholeSeconds rounds up to the resolution of RLIMIT_CPU.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1) / time.Second * time.Second
}

// address matches an address in a default representation, such as <function f at 0x7ffff7bd8a00> or <code object f at
// 0xe28a40, file "main.py", line 1>.
var address = regexp.MustCompile(` at 0x[0-9a-f]{5,16}([>,])`)

// text converts a call's output to UTF-8 and replaces addresses by zeros.
func text(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return strings.ToValidUTF8(string(address.ReplaceAll(b, []byte(" at 0x000000000000$1"))), "\uFFFD")
}
