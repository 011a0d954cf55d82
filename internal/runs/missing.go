package runs

import (
	"errors"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/badinput"
)

// Missing marks errors about runs, steps, groups and generations that the record does not hold as errors that the
// caller can mend.
func Missing(err error) error {
	var none *analysis.NoRunError
	if errors.As(err, &none) && len(none.Near) > 0 {
		return badinput.Of(err)
	}
	if errors.Is(err, analysis.ErrNoRun) {
		return badinput.Errorf("%w; `ropewalk runs` lists them", err)
	}
	if errors.Is(err, analysis.ErrNoStep) || errors.Is(err, analysis.ErrNoGroup) ||
		errors.Is(err, analysis.ErrNoGeneration) {
		return badinput.Of(err)
	}
	return err
}
