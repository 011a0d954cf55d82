package python_test

import (
	"context"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
)

func TestFind(t *testing.T) {
	exe, err := exec.LookPath(pythontest.Need(t, "PYTHON"))
	require.NoError(t, err)
	for _, c := range []struct {
		name, interpreter string
		modules           []string
		want, fault       string
	}{
		{"an interpreter", exe, nil, exe, ""},
		{"modules", exe, []string{"json", "os.path"}, exe, ""},
		{"a module that is not there", exe, []string{"json", "no_such_module"}, "",
			exe +
				" cannot import json and no_such_module: exit status 1: ModuleNotFoundError: No module named " +
				"'no_such_module' (set ROPEWALK_PYTHON to one that can)"},
		{"no interpreter", "/no/such/python", nil, "", "/no/such/python cannot start: "},
		{"no interpreter for modules", "/no/such/python", []string{"json"}, "", "/no/such/python cannot import json: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(python.Variable, c.interpreter)
			got, err := python.Find(t.Context(), c.modules...)
			require.Equal(t, c.want, got)
			if c.fault == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.fault)
		})
	}
}

func TestFindEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := python.Find(ctx, "json")
	require.ErrorIs(t, err, context.Canceled)
}
