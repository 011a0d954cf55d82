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

// budget is what a rendering has used. Its methods panic with a failure where there is too little left.
type budget struct {
	bytes, visits, depth int
	line                 int    // of the expression that is evaluated, or of the last statement that has one
	filter               string // that is applied; "" if none is
}

// ErrExceeded is the cause of the error of a rendering that has reached a bound.
var ErrExceeded = errors.New("a rendering has reached a bound")

// exceeded is the error of such a rendering.
type exceeded struct{ error }

// Unwrap returns the cause of the error.
func (exceeded) Unwrap() error { return ErrExceeded }

// failure is what parsing and rendering panic with. An error can come from deep inside of an expression, or from the
// middle of a comparison or a sort, and always ends all of it.
type failure struct{ error }

// failure is the failure of a rendering, with its line and the filter in which it happened.
func (b *budget) failure(format string, args ...any) failure {
	err := fmt.Errorf(format, args...)
	if b.filter != "" {
		err = fmt.Errorf("filter %s: %w", b.filter, err)
	}
	if b.line > 0 {
		err = fmt.Errorf("line %d: %w", b.line, err)
	}
	return failure{err}
}

// undefined is the failure of what needs a value and gets none.
func (b *budget) undefined(u undefined) failure { return b.failure("%q is undefined", u.name) }

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
	panic(failure{exceeded{fmt.Errorf("line %d: "+format, b.line, bound)}})
}

// explain turns a panic into an error: of a bound, or of a fault in this package that a template has found.
func explain(err *error) {
	switch fault := recover().(type) {
	case nil:
	case failure:
		*err = fmt.Errorf("chat template: %w", fault.error)
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
