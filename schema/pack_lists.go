package schema

import (
	"slices"
	"unsafe"
)

// lists collects a slice.
type lists[T cell] struct {
	gathered[T]
	full  byte // the definition level of an element
	empty byte // that of the empty list: the one below, or with holes two; null is below, if a list can be null
	holes holes
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
			g.addElements(unsafe.Add(field, uintptr(i)*size), list)
		case list == nil && g.empty > 0:
			g.definition = append(g.definition, 0)
			g.nulls++
			g.void++
		default:
			g.definition = append(g.definition, g.empty)
			g.nulls++
			g.none++
		}
	}
	g.rows += n
	g.entries = len(g.definition)
}

// addElements adds those that are not null.
func (g *lists[T]) addElements(field unsafe.Pointer, list []T) {
	for at := 0; at < len(list); {
		end, null := g.holes.run(field, at, len(list))
		if null {
			g.definition = repeat(g.definition, g.full-1, end-at)
			g.nulls += end - at
		} else {
			g.definition = repeat(g.definition, g.full, end-at)
			g.values = append(g.values, list[at:end]...)
		}
		at = end
	}
}

func (g *lists[T]) bytes() int { return 8*g.rows + 2*len(g.definition) + g.valueBytes() }

// runs holds long runs of the levels.
var runs = func() (runs [4][512]byte) {
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
