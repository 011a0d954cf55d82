// Package failure gives the errors of activities their kinds, and decides which of them a retry cannot fix.
//
// Glossary. To *classify* an error is to give it the kind that the errors it wraps stand for.
package failure

import (
	"context"
	"errors"
	"strings"
	"syscall"

	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// Classify makes errors that a retry cannot fix non-retryable and gives them their kind. Other errors stay retryable.
func Classify(err error) error {
	var problems recipes.Problems
	var unfit *refusal.Error
	var bad badinput.Error
	var own remote.CodeError
	var nonFinite *policy.NonFiniteError
	var device *policy.DeviceError
	var decided *temporal.ApplicationError
	switch {
	case err == nil:
		return nil
	// Already classified by a stage that this stage has run within itself.
	case errors.As(err, &decided) && decided.NonRetryable():
		if err == error(decided) { // its details say which stage that was
			return err
		}
		return Permanent(decided.Type(),
			errors.New(strings.Replace(err.Error(), decided.Error(), decided.Message(), 1)))
	case errors.As(err, &problems):
		return Permanent(api.FailBadInput, err)
	case errors.As(err, &unfit):
		return Permanent(refusals[unfit.Kind], err)
	case errors.As(err, &bad):
		return Permanent(api.FailBadInput, err)
	case errors.As(err, &own): // a retry loads what its file holds then
		return temporal.NewApplicationError(err.Error(), api.FailCode)
	case errors.As(err, &nonFinite):
		return Permanent(api.FailNonFinite, err)
	case errors.Is(err, policy.ErrOutOfMemory): // others may hold the device's memory at the moment
		return temporal.NewApplicationError(err.Error(), api.FailMemory)
	case errors.Is(err, policy.ErrBadRequest):
		return Permanent(api.FailRefused, err)
	case errors.As(err, &device): // another device, or the same device after a reset, may work
		return temporal.NewApplicationError(err.Error(), device.Kind)
	case errors.Is(err, commit.ErrUnkept): // another attempt puts it again
		return temporal.NewApplicationError(err.Error(), api.FailUnkept)
	case errors.Is(err, store.ErrNoSpace), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return temporal.NewApplicationError(err.Error(), api.FailFull)
	case errors.Is(err, commit.ErrDamaged), errors.Is(err, schema.ErrCorrupt):
		return Permanent(api.FailCorrupt, err)
	case errors.Is(err, store.ErrNoBucket), errors.Is(err, store.ErrCredentials), errors.Is(err, store.ErrTooLarge):
		return Permanent(api.FailBadInput, err)
	// A stage that this stage has run within itself has named the kind.
	case errors.As(err, &decided) && decided.Type() != "" && err != error(decided):
		return temporal.NewApplicationError(strings.Replace(err.Error(), decided.Error(), decided.Message(), 1),
			decided.Type())
	}
	return err
}

// refusals are the kinds of failure for the refusals of domain packages.
var refusals = map[refusal.Kind]string{refusal.Corrupt: api.FailCorrupt, refusal.Unusable: api.FailRefused}

// OwnLimit separates the end of the activity from other deadlines and cancellations. If an engine or a store gives up
// after its own limit, or one of its calls is cancelled, Temporal would mistake the error for the activity's deadline
// and not retry.
func OwnLimit(ctx context.Context, err error) error {
	if ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return temporal.NewApplicationError(err.Error(), "")
	}
	return err
}

// Permanent makes an error that no retry fixes.
func Permanent(kind string, err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), kind, nil)
}

// KindOf names the kind of a failure for metrics and logs.
func KindOf(ctx context.Context, err error) string {
	var decided *temporal.ApplicationError
	switch {
	case ctx.Err() != nil:
		return "cancelled"
	case errors.As(err, &decided) && decided.Type() != "":
		return decided.Type()
	}
	return "other"
}

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
