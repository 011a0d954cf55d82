// Package badinput marks errors that the caller of a command can mend: a wrong flag, file, recipe or run. It also
// recognises files that must be unpacked first.
package badinput

import "fmt"

// Error is an error that the caller can mend. Its text is that of the error it wraps.
type Error struct{ err error }

// Errorf makes an Error as fmt.Errorf makes an error.
func Errorf(format string, args ...any) error { return Error{fmt.Errorf(format, args...)} }

// Of marks an error as one that the caller can mend.
func Of(err error) error { return Error{err} }

// Error implements error.
func (e Error) Error() string { return e.err.Error() }

// Unwrap returns the marked error.
func (e Error) Unwrap() error { return e.err }
