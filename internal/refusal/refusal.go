// Package refusal marks errors that a retry cannot fix: a stage refuses its input. Domain packages return them, and
// activities translate them into Temporal's non-retryable failures. An error that the author of a request can fix is a
// badinput.Error instead.
package refusal

import "fmt"

// Kind says why an input is refused.
type Kind string

const (
	// Corrupt means that committed rows contradict each other or their manifest.
	Corrupt Kind = "corrupt"
	// Unusable means that the rows are whole, but that a stage cannot work on them under its recipe.
	Unusable Kind = "unusable"
)

// Error is a refused input.
type Error struct {
	// Kind says why the input is refused.
	Kind Kind
	text string
}

// Error implements error.
func (e *Error) Error() string { return e.text }

// Corruptf returns an Error of kind Corrupt.
func Corruptf(format string, args ...any) error {
	return &Error{Kind: Corrupt, text: fmt.Sprintf(format, args...)}
}

// Unusablef returns an Error of kind Unusable.
func Unusablef(format string, args ...any) error {
	return &Error{Kind: Unusable, text: fmt.Sprintf(format, args...)}
}
