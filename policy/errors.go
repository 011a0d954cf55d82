package policy

import (
	"errors"
	"fmt"
)

// Sentinels of the errors of samplers and trainers; test with errors.Is.
var (
	ErrOutOfMemory  = errors.New("engine out of memory")
	ErrLost         = errors.New("engine lost")
	ErrNotLoaded    = errors.New("no model is loaded under this role")
	ErrNotKept      = errors.New("no such kept forward pass")
	ErrWrongVersion = errors.New("resident model is of another version")
	ErrBadRequest   = errors.New("bad engine request")
	ErrIncapable    = errors.New("the sampler cannot do what the recipe needs")
)

// DeviceError says that a device failed under its engine. The same work may succeed on another device.
type DeviceError struct {
	Kind string // kind of failure, e.g. gpu_xid_79
	Err  error
}

// Error names the kind of failure and its cause.
func (e *DeviceError) Error() string { return fmt.Sprintf("%s: %v", e.Kind, e.Err) }

// Unwrap returns the cause.
func (e *DeviceError) Unwrap() error { return e.Err }

// NonFiniteError says which parameter's gradient (or which output) was NaN or infinite.
type NonFiniteError struct{ Name string }

// Error names the parameter or output.
func (e *NonFiniteError) Error() string { return fmt.Sprintf("non-finite value in %s", e.Name) }
