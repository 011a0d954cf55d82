package failure

import (
	"errors"

	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
)

// Kinds is the converter of failures for the clients of workers. Temporal's own names the type of an error in Go
// ("wrapError") as its kind. Here an error has the kind that one of the errors it wraps was given, or none.
type Kinds struct{ converter.FailureConverter }

// NewKinds returns the converter.
func NewKinds() Kinds { return Kinds{temporal.GetDefaultFailureConverter()} }

// ErrorToFailure implements converter.FailureConverter.
func (k Kinds) ErrorToFailure(err error) *failurepb.Failure {
	all := k.FailureConverter.ErrorToFailure(err)
	for f := all; f != nil && err != nil; f, err = f.GetCause(), errors.Unwrap(err) {
		var decided *temporal.ApplicationError
		var panicked *temporal.PanicError
		switch info := f.GetApplicationFailureInfo(); {
		case info == nil || errors.As(err, &panicked):
		case errors.As(err, &decided):
			info.Type = decided.Type()
		default:
			info.Type = ""
		}
	}
	return all
}
