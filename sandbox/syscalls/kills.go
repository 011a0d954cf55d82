// Package syscalls holds the filters of the system calls that code in the sandbox may make (seccomp), and tells which
// signals it sends.
//
// Glossary. A *filter* is a program of the kernel's packet filter, as hexadecimal text: the interpreters load it. A
// *policy* says what it does about each call: allow, refuse with an error, or end the process.
package syscalls

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A process that was ended by a signal does not tell who sent it: its own code, a limit, or someone outside of the
// sandbox (the machine's OOM killer, a person). A signal from outside is breakage; the other two are verdicts. So the
// sandbox tracks every way in which code can cause a signal to itself:
//
//   - system calls that send one are reported by a filter (Kills) and then carried out;
//   - POSIX timers, which can send one later, fail, and a child's exit signal can only be SIGCHLD;
//   - a CPU limit that the code has lowered is read from the process before it is reaped (serve.py, session.py);
//   - memory is reported by the control group (memory.go of sandbox/zygote).
//
// What is left are the signals that the kernel itself sends for what code does (FromKernel). Nothing tells them from
// the same signal sent from outside. A call that ends by one is run again, and the second end counts: signals from
// outside seldom hit a call twice, and code that ends itself this way gains one more run but not breakage.
//
// Where the kernel cannot report system calls (before Linux 5.5, or inside another such filter), every signal counts as
// the code's own. Otherwise code could escape its verdict.

// killCalls are the system calls that send a signal, and the index of the argument with the signal's number.
var killCalls = []struct{ number, signal uint32 }{
	{unix.SYS_KILL, 1}, {unix.SYS_TKILL, 1}, {unix.SYS_TGKILL, 2}, {unix.SYS_PIDFD_SEND_SIGNAL, 1},
	{unix.SYS_RT_SIGQUEUEINFO, 1}, {unix.SYS_RT_TGSIGQUEUEINFO, 2},
}

// Signals has one bit for each signal.
type Signals uint64

// SignalsOf returns the set of these signals.
func SignalsOf(all ...unix.Signal) (s Signals) {
	for _, one := range all {
		s |= 1 << (one - 1)
	}
	return s
}

// Has reports whether a signal is in the set.
func (s Signals) Has(one unix.Signal) bool { return s&SignalsOf(one) != 0 }

var (
	// FromKernel are the signals that the kernel sends a process for what its code does: faults, refused system
	// calls, timers, closed pipes, files beyond their limit.
	FromKernel = SignalsOf(unix.SIGSEGV, unix.SIGBUS, unix.SIGILL, unix.SIGFPE, unix.SIGTRAP, unix.SIGSYS,
		unix.SIGALRM, unix.SIGVTALRM, unix.SIGPROF, unix.SIGPIPE, unix.SIGXFSZ)
	// Stopping are the signals that stop a process.
	Stopping = SignalsOf(unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	// harmless are the numbers that neither end nor stop a process unless it handles them; 0 only asks for it.
	harmless = []unix.Signal{0, unix.SIGCHLD, unix.SIGCONT, unix.SIGURG, unix.SIGWINCH}
)

// KillFilter is a program, as hexadecimal text, that notifies the parent before a system call sends a signal that can
// end or stop a process. It allows everything else; refusing is the task of the other filter.
func KillFilter() string {
	program := []instruction{statement(load, 4), jump(ifEqual, auditArch, 1, 0), statement(ret, unix.SECCOMP_RET_ALLOW),
		statement(load, 0)}
	for _, c := range killCalls {
		n := uint8(len(harmless))
		program = append(program, jump(ifEqual, c.number, 0, n+3), statement(load, 16+8*c.signal))
		for i, number := range harmless {
			program = append(program, jump(ifEqual, uint32(number), n-uint8(i), 0))
		}
		program = append(program, statement(ret, unix.SECCOMP_RET_USER_NOTIF), statement(ret, unix.SECCOMP_RET_ALLOW))
	}
	program = append(program, statement(ret, unix.SECCOMP_RET_ALLOW))
	return hex.EncodeToString(encode(program))
}

// encode returns the program as an array of struct sock_filter.
func encode(program []instruction) (bytes []byte) {
	for _, i := range program {
		bytes = binary.NativeEndian.AppendUint16(bytes, i.code)
		bytes = append(bytes, i.jt, i.jf)
		bytes = binary.NativeEndian.AppendUint32(bytes, i.k)
	}
	return bytes
}

// Kills receives notifications of the signals that code is about to send. A nil one receives none.
type Kills struct {
	file    *os.File      // the filter's listener
	sweeper int           // the process whose kills are the sandbox's own; 0 if there is none
	asked   atomic.Uint64 // a Signals
	count   atomic.Int64
}

// Code that sends very many signals has to wait for each, since the answers use this process's time and not the code's.
const (
	freeKills = 1000
	laterKill = time.Millisecond
)

// Listen listens until Close, or until every process under the filter has ended. It takes ownership of fd.
func Listen(fd, sweeper int) (*Kills, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("listen for kills: %w", err)
	}
	k := &Kills{file: os.NewFile(uintptr(fd), "kills"), sweeper: sweeper}
	raw, err := k.file.SyscallConn()
	if err != nil {
		k.file.Close()
		return nil, fmt.Errorf("listen for kills: %w", err)
	}
	go func() { _ = raw.Read(func(fd uintptr) bool { return k.answer(int(fd)) }) }() // fails once the file is closed
	return k, nil
}

// notification is struct seccomp_notif of linux/seccomp.h.
type notification struct {
	id         uint64
	pid, flags uint32
	number     int32
	arch       uint32
	ip         uint64
	arguments  [6]uint64
}

// notificationReply is struct seccomp_notif_resp of linux/seccomp.h.
type notificationReply struct {
	id           uint64
	value        int64
	errno, flags int32
}

// signal returns the set of the one signal that the process is about to send.
func (n notification) signal() Signals {
	for _, c := range killCalls {
		if number := n.arguments[c.signal] & wholeWord; c.number == uint32(n.number) && number >= 1 && number <= 64 {
			return SignalsOf(unix.Signal(number))
		}
	}
	return 0
}

// answer records the requested signals and lets them continue. It reports whether no more can come.
func (k *Kills) answer(fd int) bool {
	for {
		watched := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(watched, 0)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || watched[0].Revents&unix.POLLIN == 0 && n > 0:
			return true // every process under the filter has ended
		case n == 0:
			return false
		}
		var asked notification
		if notify(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&asked)) != nil {
			continue // the process was killed in the meantime
		}
		if int(asked.pid) != k.sweeper {
			k.asked.Or(uint64(asked.signal())) // before the signal, so that a reader who sees its effect also sees this
			if k.count.Add(1) > freeKills {
				time.Sleep(laterKill)
			}
		}
		on := notificationReply{id: asked.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		_ = notify(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&on)) // fails if it was killed in the meantime
	}
}

func notify(fd int, request uintptr, argument unsafe.Pointer) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
	if errno != 0 {
		return errno
	}
	return nil
}

// Begin resets the record for the next call.
func (k *Kills) Begin() {
	if k != nil {
		k.asked.Store(0)
		k.count.Store(0)
	}
}

// Requested reports whether code has asked for one of the signals since Begin.
func (k *Kills) Requested(some Signals) bool {
	return k != nil && Signals(k.asked.Load())&some != 0
}

// Close stops listening.
func (k *Kills) Close() {
	if k != nil {
		k.file.Close()
	}
}
