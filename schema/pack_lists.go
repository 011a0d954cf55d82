package schema

import (
	"slices"
	"unsafe"
)

// lists collects a slice.
type lists[T cell] struct {
	gathered[T]
	full byte // the definition level of an element: one below is the empty list, and two are null
}

func (g *lists[T]) expect(field unsafe.Pointer, n int, size uintptr) {
	entries := 0
	for i := range n {
		entries += max(1, len(*(*[]T)(unsafe.Add(field, uintptr(i)*size))))
	}
	entries = min(entries, pageRoom/int(2+unsafe.Sizeof(*new(T)))*9/8) // a page ends after it is full
	g.restart()
	g.values = slices.Grow(g.values, entries)
	g.repetition, g.definition = slices.Grow(g.repetition, entries), slices.Grow(g.definition, entries)
}

func (g *lists[T]) add(field unsafe.Pointer, n int, size uintptr) {
	g.restart()
	for i := range n {
		list := *(*[]T)(unsafe.Add(field, uintptr(i)*size))
		g.repetition = append(g.repetition, 0)
		switch {
		case len(list) > 0:
			g.repetition = repeat(g.repetition, 1, len(list)-1)
			g.definition = repeat(g.definition, g.full, len(list))
			g.values = append(g.values, list...)
		case list == nil && g.full == 2:
			g.definition = append(g.definition, 0)
			g.nulls++
			g.void++
		default:
			g.definition = append(g.definition, g.full-1)
			g.nulls++
		}
	}
	g.rows += n
	g.entries = len(g.definition)
}

func (g *lists[T]) bytes() int { return 8*g.rows + 2*len(g.definition) + g.valueBytes() }

// runs holds long runs of the levels.
var runs = func() (runs [3][512]byte) {
	for level := range runs {
		for i := range runs[level] {
			runs[level][i] = byte(level)
		}
	}
	return runs
}()

// repeat appends a level n times.
func repeat(levels []byte, level byte, n int) []byte {
	run := runs[level][:]
	for ; n > len(run); n -= len(run) {
		levels = append(levels, run...)
	}
	return append(levels, run[:n]...)
}
