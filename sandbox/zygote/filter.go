package zygote

import (
	"encoding/binary"
	"encoding/hex"

	"golang.org/x/sys/unix"
)

// A filter is a classic BPF program over struct seccomp_data: the call's number is the word at
// offset 0, the architecture the one at 4, the arguments follow from 16 in 8 bytes each.

// rule refuses one system call unless its first argument passes.
type rule struct {
	number uint32
	pass   condition
	errno  unix.Errno
}

// condition is a test of the low word of the first argument: jump.code is ifEqual or ifAnySet.
// The zero condition never passes.
type condition struct {
	code    uint16
	value   uint32
	negated bool // passes where the test does not hold
}

// refusedAlways: ways out to the network, to other processes, to state that outlives a call,
// and parts of the kernel that model-written code has no business with.
var refusedAlways = []uint32{
	unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
	unix.SYS_IO_URING_SETUP,
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SEMGET, unix.SYS_MSGGET, unix.SYS_MQ_OPEN,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_ACCT, unix.SYS_QUOTACTL,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME,
}

// refusedToCalls comes on top where no process namespace confines a call: no new processes
// (threads are allowed) and no signals, so that killing the child is complete and the zygote
// is out of reach.
var refusedToCalls = []uint32{
	unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_PIDFD_SEND_SIGNAL,
	unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_UNSHARE, unix.SYS_SETNS,
}

// zygoteFilter is loaded once, before the first fork.
func zygoteFilter() string { return assemble(refuse(refusedAlways)) }

// callFilter is loaded by each child where the tier has no process namespace.
func callFilter() string {
	rules := refuse(append(append([]uint32{}, refusedToCalls...), forks...))
	// The C library falls back from clone3, whose flags a filter cannot see, to clone.
	rules = append(rules,
		rule{number: unix.SYS_CLONE3, errno: unix.ENOSYS},
		rule{number: unix.SYS_CLONE, pass: condition{code: ifAnySet, value: unix.CLONE_THREAD}, errno: unix.EPERM},
		rule{number: unix.SYS_PRLIMIT64, pass: condition{code: ifEqual, value: 0}, errno: unix.EPERM}, // 0: oneself
	)
	return assemble(rules)
}

func refuse(numbers []uint32) []rule {
	rules := make([]rule, len(numbers))
	for i, n := range numbers {
		rules[i] = rule{number: n, errno: unix.EPERM}
	}
	return rules
}

// instruction is struct sock_filter.
type instruction struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

func statement(code uint16, k uint32) instruction { return instruction{code: code, k: k} }

func jump(code uint16, k uint32, jt, jf uint8) instruction {
	return instruction{code: code, jt: jt, jf: jf, k: k}
}

const (
	load     = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	ifEqual  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	ifAbove  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	ifAnySet = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	give     = unix.BPF_RET | unix.BPF_K
	foreign  = 0x40000000 // x32 calls have this bit; no other architecture numbers calls so high
)

// assemble returns the program as hexadecimal text.
func assemble(rules []rule) string {
	program := []instruction{
		statement(load, 4),
		jump(ifEqual, auditArch, 1, 0),
		statement(give, unix.SECCOMP_RET_KILL_PROCESS),
		statement(load, 0),
		jump(ifAbove, foreign, 0, 1),
		statement(give, unix.SECCOMP_RET_KILL_PROCESS),
	}
	for _, r := range rules {
		program = append(program, r.program()...)
	}
	program = append(program, statement(give, unix.SECCOMP_RET_ALLOW))
	var bytes []byte
	for _, i := range program {
		bytes = binary.NativeEndian.AppendUint16(bytes, i.code)
		bytes = append(bytes, i.jt, i.jf)
		bytes = binary.NativeEndian.AppendUint32(bytes, i.k)
	}
	return hex.EncodeToString(bytes)
}

// program expects the call's number in the accumulator and leaves it there.
func (r rule) program() []instruction {
	refusal := statement(give, unix.SECCOMP_RET_ERRNO|uint32(r.errno))
	if r.pass.code == 0 {
		return []instruction{jump(ifEqual, r.number, 0, 1), refusal}
	}
	holds, fails := uint8(1), uint8(0) // 1 jumps over the refusal
	if r.pass.negated {
		holds, fails = fails, holds
	}
	return []instruction{
		jump(ifEqual, r.number, 0, 4),
		statement(load, 16), // low word of the first argument on little-endian machines
		jump(r.pass.code, r.pass.value, holds, fails),
		refusal,
		statement(load, 0),
	}
}
