package failure

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/python/pythontest"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// No error has the name of a type in Go as its kind. What wraps an error that has a kind has that kind too.
func TestKindsOfFailures(t *testing.T) {
	away := temporal.NewApplicationError("it is away", api.FailJudge)
	for name, c := range map[string]struct {
		err  error
		kind string
	}{
		"a plain error":      {errors.New("no room"), ""},
		"a wrapped one":      {fmt.Errorf("write: %w", errors.New("no room")), ""},
		"one with a type":    {fmt.Errorf("read: %w", &fs.PathError{Op: "open", Err: fs.ErrNotExist}), ""},
		"several":            {errors.Join(errors.New("no room"), fs.ErrNotExist), ""},
		"one with a kind":    {away, api.FailJudge},
		"one with a wrapped": {fmt.Errorf("judge: %w", fmt.Errorf("ask: %w", away)), api.FailJudge},
		"a user's code":      {Classify(fmt.Errorf("function: %w", codeError(t))), api.FailCode},
	} {
		for f := NewKinds().ErrorToFailure(c.err); f != nil; f = f.GetCause() {
			require.Equal(t, c.kind, f.GetApplicationFailureInfo().GetType(), name)
		}
	}
}

// codeError is the error of a function that does not load.
func codeError(t *testing.T) error {
	t.Helper()
	t.Setenv(python.Variable, pythontest.Need(t, "PYTHON"))
	_, err := (&remote.Functions{}).Code(t.Context(), remote.FunctionSettings{Module: "no_such_module:f"})
	require.ErrorContains(t, err, "ModuleNotFoundError")
	return err
}
