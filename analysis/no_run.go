package analysis

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/spelling"
	"github.com/ropewalk/ropewalk/schema"
)

// ErrNoRun means that the store has no run of that name. The error is a NoRunError, which may suggest others.
var ErrNoRun = errors.New("no such run in the record")

// NoRunError is ErrNoRun with the names that the caller may have meant.
type NoRunError struct {
	Why  string
	Near []string
}

// Error implements error.
func (e *NoRunError) Error() string {
	text := ErrNoRun.Error() + ": " + e.Why
	if len(e.Near) > 0 {
		text += "; did you mean " + spelling.OrList(e.Near) + "?"
	}
	return text
}

// Is makes a NoRunError an ErrNoRun.
func (e *NoRunError) Is(target error) bool { return target == ErrNoRun }

// namesSuggested bounds how many runs are suggested for a misspelt name.
const namesSuggested = 3

// NoRun is the error about a name that is not among those of the runs. It suggests the runs whose names begin with it,
// else those with the nearest names.
func NoRun(name, why string, names []string) *NoRunError {
	var longer []string
	names = slices.Sorted(slices.Values(names)) // of runs with equal recipe and seed, the newest last
	for _, n := range names {
		if strings.HasPrefix(n, name) && n != name {
			longer = append(longer, n)
		}
	}
	near := longer
	if len(near) == 0 {
		near = spelling.AllNearest(name, names)
	}
	return &NoRunError{Why: why, Near: near[max(0, len(near)-namesSuggested):]}
}

// NoRun returns the error about a name that the store has no run of.
func (r *Record) NoRun(ctx context.Context, name, why string) error {
	var names []string
	for _, prefix := range []string{schema.CataloguePrefix, schema.RequestsPrefix} {
		listed, err := r.names(ctx, prefix)
		if err != nil {
			return err
		}
		names = append(names, listed...)
	}
	return NoRun(name, why, slices.DeleteFunc(names, func(n string) bool { return n == name }))
}
