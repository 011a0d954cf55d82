// Package rescue turns panics into errors, so that a panic in the work on one row does not end the work on others.
package rescue

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Panic is a panic that was caught.
type Panic struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

// Error returns the panic's value without the stack, which is for logs.
func (p *Panic) Error() string { return fmt.Sprintf("panicked: %v", p.Value) }

// Unwrap returns the panic's value if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Do runs f and returns its error, or the *Panic that ended it. It catches panics only in the goroutine of f.
func Do(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = caught(value)
		}
	}()
	return f()
}

// caught returns a panic that was caught before and thrown again unchanged, because its stack says where it started.
func caught(value any) *Panic {
	if p, ok := value.(*Panic); ok {
		return p
	}
	return &Panic{Value: value, Stack: debug.Stack()}
}

// Stack returns the stack of a panic in err, or "" if there is none.
func Stack(err error) string {
	var p *Panic
	if errors.As(err, &p) {
		return string(p.Stack)
	}
	return ""
}
