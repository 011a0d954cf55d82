// Package rescue turns panics into errors, for work on one row that must not end the work on others.
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

// Error names the panic's value; the stack is for logs.
func (p *Panic) Error() string { return fmt.Sprintf("panicked: %v", p.Value) }

// Unwrap returns the value where it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Do runs f and returns its error, or the *Panic that ended it. It catches f's own goroutine alone.
func Do(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = caught(value)
		}
	}()
	return f()
}

// caught keeps a panic that was caught and thrown again: its stack says where it began.
func caught(value any) *Panic {
	if p, ok := value.(*Panic); ok {
		return p
	}
	return &Panic{Value: value, Stack: debug.Stack()}
}

// Stack returns the stack of a panic in err, "" without one.
func Stack(err error) string {
	var p *Panic
	if errors.As(err, &p) {
		return string(p.Stack)
	}
	return ""
}
