package syscalls

import (
	"encoding/hex"
	"slices"

	"golang.org/x/sys/unix"
)

// A filter is a classic BPF program over struct seccomp_data: the system call's number is the word at offset 0, the
// architecture the word at offset 4, and the arguments start at offset 16, 8 bytes each.
//
// Filters list what is allowed: a system call that a later kernel adds stays refused until someone has reviewed it. The
// program finds the number by binary search. From 5.11 on, kernels work out once which numbers pass whatever their
// arguments, and do not run the program for them.

// action says what happens to one system call.
type action struct {
	errno        unix.Errno    // the error it fails with; 0 allows it
	alternatives [][]condition // allows it if all conditions of one alternative hold
	pretended    [][]condition // the same, but it does nothing and reports success
}

// always holds for every call.
var always = [][]condition{{}}

// condition tests the low word of an argument: word & mask == value, or the opposite.
type condition struct {
	argument    uint32
	mask, value uint32
	not         bool
	high        bool // tests the high word instead
}

const wholeWord = 0xffffffff

// equals holds if an argument has the value.
func equals(argument, value uint32) condition {
	return condition{argument: argument, mask: wholeWord, value: value}
}

// isNull holds if an argument is the null pointer.
func isNull(argument uint32) []condition {
	return []condition{equals(argument, 0), {argument: argument, mask: wholeWord, high: true}}
}

// isNone holds if an argument is none of the values.
func isNone(argument uint32, values ...uint32) []condition {
	out := make([]condition, len(values))
	for i, v := range values {
		out[i] = condition{argument: argument, mask: wholeWord, value: v, not: true}
	}
	return out
}

// anyOf returns alternatives that hold if an argument is one of the values.
func anyOf(argument uint32, values ...uint32) [][]condition {
	out := make([][]condition, len(values))
	for i, v := range values {
		out[i] = []condition{equals(argument, v)}
	}
	return out
}

// policy says what happens to every system call. Calls that it does not name fail with ENOSYS, so that libraries fall
// back to what they did before the call existed.
type policy map[uint32]action

func (p policy) allow(numbers ...uint32) {
	for _, n := range numbers {
		p[n] = action{}
	}
}

func (p policy) refuse(errno unix.Errno, numbers ...uint32) {
	for _, n := range numbers {
		p[n] = action{errno: errno}
	}
}

// only allows a call if one of the alternatives holds.
func (p policy) only(number uint32, alternatives ...[]condition) {
	p[number] = action{errno: unix.EPERM, alternatives: alternatives}
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
	load    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	ifEqual = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	ifAbove = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	jumpTo  = unix.BPF_JMP | unix.BPF_JA
	and     = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	ret     = unix.BPF_RET | unix.BPF_K
	x32Bit  = 0x40000000 // x32 calls have this bit; no other architecture has numbers this high
)

// assemble returns the policy's program as hexadecimal text.
func assemble(p policy) string {
	program := []instruction{
		statement(load, 4),
		jump(ifEqual, auditArch, 1, 0),
		statement(ret, unix.SECCOMP_RET_KILL_PROCESS),
		statement(load, 0),
		jump(ifAbove, x32Bit, 0, 1),
		statement(ret, unix.SECCOMP_RET_KILL_PROCESS),
	}
	program = append(program, search(p.spans())...)
	return hex.EncodeToString(encode(program))
}

// span is a range of system call numbers with one action: from this number up to the next span's.
type span struct {
	from uint32
	does action
}

// spans returns ranges that cover every number, in order.
func (p policy) spans() []span {
	numbers := make([]uint32, 0, len(p))
	for n := range p {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	unknown := action{errno: unix.ENOSYS}
	out := []span{{0, unknown}}
	add := func(from uint32, does action) {
		last := &out[len(out)-1]
		switch {
		case last.from == from:
			last.does = does
		case does.depends() || last.does.depends() || last.does.errno != does.errno:
			out = append(out, span{from, does})
		}
	}
	for i, n := range numbers {
		add(n, p[n])
		if i+1 == len(numbers) || numbers[i+1] != n+1 {
			add(n+1, unknown)
		}
	}
	return out
}

// search returns a program that expects the call's number in the accumulator.
func search(spans []span) []instruction {
	if len(spans) == 1 {
		return spans[0].does.program()
	}
	half := len(spans) / 2
	below, above := search(spans[:half]), search(spans[half:])
	choice := []instruction{jump(ifAbove, spans[half].from, 0, 1), statement(jumpTo, uint32(len(below)))}
	return slices.Concat(choice, below, above)
}

// depends reports whether the action is more than to allow or to refuse every call.
func (a action) depends() bool { return a.alternatives != nil || a.pretended != nil }

// program returns instructions that end by allowing or refusing the call.
func (a action) program() []instruction {
	if a.errno == 0 {
		return []instruction{statement(ret, unix.SECCOMP_RET_ALLOW)}
	}
	var out []instruction
	for _, all := range a.alternatives {
		out = append(out, endIf(all, unix.SECCOMP_RET_ALLOW)...)
	}
	for _, all := range a.pretended {
		out = append(out, endIf(all, unix.SECCOMP_RET_ERRNO)...) // error 0: the call returns 0
	}
	return append(out, statement(ret, unix.SECCOMP_RET_ERRNO|uint32(a.errno)))
}

// endIf returns instructions that end with a verdict if all conditions hold, and otherwise continue after themselves.
func endIf(all []condition, verdict uint32) (out []instruction) {
	end := 3*len(all) + 1
	for _, c := range all {
		at := 16 + 8*c.argument
		if c.high { // both architectures put the low word first
			at += 4
		}
		out = append(out, statement(load, at), statement(and, c.mask))
		fail := uint8(end - len(out) - 1)
		if c.not {
			out = append(out, jump(ifEqual, c.value, fail, 0))
		} else {
			out = append(out, jump(ifEqual, c.value, 0, fail))
		}
	}
	return append(out, statement(ret, verdict))
}
