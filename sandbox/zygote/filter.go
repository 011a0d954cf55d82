package zygote

import (
	"encoding/binary"
	"encoding/hex"
	"slices"

	"golang.org/x/sys/unix"
)

// A filter is a classic BPF program over struct seccomp_data: the call's number is the word at
// offset 0, the architecture the one at 4, the arguments follow from 16 in 8 bytes each.
//
// Filters list what is allowed: a system call that a later kernel brings is refused until somebody
// has thought about it. The program searches the numbers by halving. Kernels from 5.11 on work out
// once which numbers pass whatever their arguments, and do not run the program for them.

// action is what becomes of one system call.
type action struct {
	errno        unix.Errno    // what it fails with; 0 lets it through
	alternatives [][]condition // lets it through where all of one of them hold
}

// condition is a test of the low word of an argument: word & mask == value, or its opposite.
type condition struct {
	argument    uint32
	mask, value uint32
	not         bool
}

const wholeWord = 0xffffffff

// equals holds where an argument is one value.
func equals(argument, value uint32) condition {
	return condition{argument: argument, mask: wholeWord, value: value}
}

// isNone holds where an argument is none of some values.
func isNone(argument uint32, values ...uint32) []condition {
	out := make([]condition, len(values))
	for i, v := range values {
		out[i] = condition{argument: argument, mask: wholeWord, value: v, not: true}
	}
	return out
}

// anyOf are alternatives: an argument is one of some values.
func anyOf(argument uint32, values ...uint32) [][]condition {
	out := make([][]condition, len(values))
	for i, v := range values {
		out[i] = []condition{equals(argument, v)}
	}
	return out
}

// policy says what becomes of every system call; those that it does not name do not exist (ENOSYS),
// so that libraries fall back on what they did before there was such a call.
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

// only lets a call through where one of the alternatives holds.
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
	always  = unix.BPF_JMP | unix.BPF_JA
	and     = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	give    = unix.BPF_RET | unix.BPF_K
	foreign = 0x40000000 // x32 calls have this bit; no other architecture numbers calls so high
)

// assemble returns the policy's program as hexadecimal text.
func assemble(p policy) string {
	program := []instruction{
		statement(load, 4),
		jump(ifEqual, auditArch, 1, 0),
		statement(give, unix.SECCOMP_RET_KILL_PROCESS),
		statement(load, 0),
		jump(ifAbove, foreign, 0, 1),
		statement(give, unix.SECCOMP_RET_KILL_PROCESS),
	}
	program = append(program, search(p.spans())...)
	var bytes []byte
	for _, i := range program {
		bytes = binary.NativeEndian.AppendUint16(bytes, i.code)
		bytes = append(bytes, i.jt, i.jf)
		bytes = binary.NativeEndian.AppendUint32(bytes, i.k)
	}
	return hex.EncodeToString(bytes)
}

// span is a run of neighbouring calls with one action, from a number up to the next span's.
type span struct {
	from uint32
	does action
}

// spans cover every number, in order.
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
		case does.alternatives != nil || last.does.alternatives != nil || last.does.errno != does.errno:
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

// search expects the call's number in the accumulator.
func search(spans []span) []instruction {
	if len(spans) == 1 {
		return spans[0].does.program()
	}
	half := len(spans) / 2
	below, above := search(spans[:half]), search(spans[half:])
	choice := []instruction{jump(ifAbove, spans[half].from, 0, 1), statement(always, uint32(len(below)))}
	return slices.Concat(choice, below, above)
}

// program ends with the call let through or refused.
func (a action) program() []instruction {
	if a.errno == 0 {
		return []instruction{statement(give, unix.SECCOMP_RET_ALLOW)}
	}
	var out []instruction
	for _, all := range a.alternatives {
		out = append(out, let(all)...)
	}
	return append(out, statement(give, unix.SECCOMP_RET_ERRNO|uint32(a.errno)))
}

// let lets the call through where all conditions hold, and else goes on behind itself.
func let(all []condition) (out []instruction) {
	end := 3*len(all) + 1
	for _, c := range all {
		out = append(out, statement(load, 16+8*c.argument), statement(and, c.mask))
		fail := uint8(end - len(out) - 1)
		if c.not {
			out = append(out, jump(ifEqual, c.value, fail, 0))
		} else {
			out = append(out, jump(ifEqual, c.value, 0, fail))
		}
	}
	return append(out, statement(give, unix.SECCOMP_RET_ALLOW))
}
