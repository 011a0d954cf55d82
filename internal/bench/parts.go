package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The states of a part that has run.
const (
	StatusOK      = "ok"
	StatusFailed  = "failed"
	StatusSkipped = "skipped"
)

// Outcome is the end of a part.
type Outcome struct {
	Status  string  `json:"status"`
	Why     string  `json:"why,omitempty"` // it failed or was skipped
	Seconds float64 `json:"seconds"`
}

// String is one line about the outcome.
func (o Outcome) String() string {
	switch {
	case o.Status == StatusSkipped:
		return o.Status + ": " + o.Why
	case o.Why != "":
		return fmt.Sprintf("%s after %.0f s: %s", o.Status, o.Seconds, o.Why)
	}
	return fmt.Sprintf("%s, %.0f s", o.Status, o.Seconds)
}

// skipError says why something cannot be measured here.
type skipError struct{ why string }

// Error says why.
func (e skipError) Error() string { return e.why }

// Skip returns an error that says why something cannot be measured here. A part that ends with it has not failed.
func Skip(format string, args ...any) error { return skipError{fmt.Sprintf(format, args...)} }

// Skipped reports whether an error, or one that it wraps, was made by Skip.
func Skipped(err error) bool { return errors.As(err, new(skipError)) }

// RunPart runs a part within a time limit; 0 is no limit. The error is that of a part that failed, and nil for one that
// was skipped.
func RunPart(ctx context.Context, limit time.Duration, run func(context.Context) error) (Outcome, error) {
	bounded, cancel := context.WithCancel(ctx)
	if limit > 0 {
		bounded, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
	}
	defer cancel()
	began := time.Now()
	err := run(bounded)
	out := Outcome{Status: StatusOK, Seconds: time.Since(began).Seconds()}
	switch {
	case err == nil:
		return out, nil
	case Skipped(err):
		out.Status, out.Why = StatusSkipped, err.Error()
		return out, nil
	}
	if cause := context.Cause(bounded); cause != nil {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	out.Status, out.Why = StatusFailed, err.Error()
	return out, err
}

// Choose reads a flag's list of names, separated by commas, each of which must be one of those known. what is the word
// for one of them.
func Choose(what, text string, known []string) ([]string, error) {
	chosen := slices.DeleteFunc(strings.Split(text, ","), func(name string) bool { return name == "" })
	for _, name := range chosen {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no %s %q; there are %s", what, name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}
