package jinja

import (
	"errors"
	"fmt"
	"strings"
)

// A template and what it renders are others' work, so a rendering has one budget. What a template makes, reads and
// visits counts, whether or not it keeps it: texts by their bytes, statements, expressions and items by their number.
const (
	mostBytes    = 128 << 20
	mostVisits   = 4 << 20
	mostTemplate = 1 << 20 // bytes of a template
	mostDepth    = 200     // of statements, expressions, macros, values
	mostLinks    = 500     // operands, attributes and filters that follow each other in one expression

	iterationCost = 4 // visits, for the names of an iteration
)

// budget is what a rendering has used. Its methods panic with an exceeded where there is too little left: bounds can be
// reached in the middle of a comparison or a sort, which have no way to return an error.
type budget struct {
	bytes, visits, depth int
	line                 int // of the last statement that has one
}

// ErrExceeded is the cause of the error of a rendering that has reached a bound.
var ErrExceeded = errors.New("a rendering has reached a bound")

// exceeded is the error of such a rendering.
type exceeded struct{ error }

// Unwrap returns the error and its cause.
func (e exceeded) Unwrap() []error { return []error{e.error, ErrExceeded} }

// visit counts n values.
func (b *budget) visit(n int) {
	if n > mostVisits-b.visits {
		b.exceed("the template takes more than %d steps", mostVisits)
	}
	b.visits += n
}

// spend counts the bytes of a text that is read or made a number of times. It is called before the texts are made.
func (b *budget) spend(n, times int) {
	if left := mostBytes - b.bytes; n > 0 && times > left/n {
		b.exceed("the template reads and writes more than %d bytes", mostBytes)
	}
	b.bytes += n * times
}

// deeper counts a level of nesting until the returned function is called.
func (b *budget) deeper(what string) func() {
	if b.depth++; b.depth > mostDepth {
		b.exceed(what+" too deeply: more than %d levels", mostDepth)
	}
	return func() { b.depth-- }
}

func (b *budget) exceed(format string, bound int) {
	panic(exceeded{lined{b.line, fmt.Errorf(format, bound)}})
}

// explain turns a panic into an error: of a bound, or of a fault in this package that a template has found.
func explain(err *error) {
	switch fault := recover().(type) {
	case nil:
	case exceeded:
		*err = fmt.Errorf("chat template: %w", fault)
	default:
		*err = fmt.Errorf("chat template: it cannot be rendered: %v", fault)
	}
}

// repeat returns n copies of a text.
func (b *budget) repeat(text string, times int) string {
	times = max(times, 0)
	b.spend(len(text), times)
	return strings.Repeat(text, times)
}

// runes are the characters of a text.
func (b *budget) runes(text string) []rune {
	b.spend(len(text), 4)
	return []rune(text)
}

// writer builds a text within a budget.
type writer struct {
	strings.Builder
	r *renderer
}

func (w *writer) write(text string) {
	w.r.spend(len(text), 1)
	w.WriteString(text)
}
