// Package zygotetest opens the sandbox for tests of other packages. If the machine lacks something, the test is
// skipped.
package zygotetest

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// Sessions opens Python sessions for a test.
func Sessions(t testing.TB) *zygote.Sessions {
	t.Helper()
	s, err := zygote.OpenSessions(zygote.Options{})
	if errors.Is(err, sandbox.ErrNoPython) {
		t.Skipf("sessions cannot be opened: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// WithSympy opens an executor with two workers whose interpreter has numpy and sympy. ROPEWALK_SANDBOX_PYTHON names the
// interpreter. If there is none the test is skipped, or fails if ROPEWALK_REQUIRE_SYMPY is set.
func WithSympy(t testing.TB, minTier sandbox.Tier) *zygote.Executor {
	t.Helper()
	e, err := zygote.Open(zygote.Options{Python: os.Getenv("ROPEWALK_SANDBOX_PYTHON"), Workers: 2, Dir: t.TempDir(),
		MinTier: minTier})
	if err == nil {
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		_, err = e.Run(t.Context(), []sandbox.Call{{Code: "import sympy", Packages: sandbox.PackagesSympy}})
	}
	if err != nil && os.Getenv("ROPEWALK_REQUIRE_SYMPY") != "" {
		t.Fatalf("ROPEWALK_REQUIRE_SYMPY is set, and %v", err)
	}
	if err != nil {
		t.Skipf("no interpreter with numpy and sympy (name one by ROPEWALK_SANDBOX_PYTHON): %v", err)
	}
	return e
}

// Need skips the test if programs cannot run, or fails it if ROPEWALK_REQUIRE_PYTHON is set.
func Need(t testing.TB) {
	t.Helper()
	e, err := zygote.Open(zygote.Options{Workers: 1})
	if err != nil {
		if os.Getenv("ROPEWALK_REQUIRE_PYTHON") != "" {
			require.NoError(t, err)
		}
		t.Skip(err)
	}
	require.NoError(t, e.Close())
}
