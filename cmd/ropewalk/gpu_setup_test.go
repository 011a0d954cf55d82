package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/setup"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
)

func TestGPUSetupFindsAPython(t *testing.T) {
	exe, err := filepath.Abs(pythontest.Need(t, "TORCH", "torch", "transformers", "safetensors"))
	require.NoError(t, err)
	t.Setenv(python.Variable, exe)
	t.Setenv("ROPEWALK_HOME", t.TempDir())
	var out, errs bytes.Buffer
	require.Equal(t, exitDone, Run(t.Context(), []string{"gpu", "setup", "--json"}, &out, &errs), errs.String())
	var p setup.Python
	require.NoError(t, json.Unmarshal(out.Bytes(), &p))
	require.Equal(t, exe, p.Path)
	require.NotEmpty(t, p.Packages["torch"])
	out.Reset()
	require.Equal(t, exitDone, Run(t.Context(), []string{"gpu", "setup"}, &out, &errs))
	require.Contains(t, out.String(), "  torch "+p.Packages["torch"]+"\n")
}

func TestGPUSetupWithoutAPython(t *testing.T) {
	home := t.TempDir()
	t.Setenv("ROPEWALK_HOME", home)
	t.Setenv("PATH", t.TempDir())
	t.Setenv(python.Variable, "")
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"check":   {[]string{"gpu", "setup", "--check"}, exitFailed, "no Python was found: install python3"},
		"install": {[]string{"gpu", "setup"}, exitBadInput, "python3 (python3 of PATH) is not there"},
		"of another": {[]string{"gpu", "setup", "--python", "/no/such/python"}, exitBadInput,
			"/no/such/python (named) is not there"},
		"both":     {[]string{"gpu", "setup", "--own", "--check"}, exitBadInput, "--check installs nothing"},
		"argument": {[]string{"gpu", "setup", "now"}, exitBadInput, `unexpected argument "now"`},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, c.code, Run(t.Context(), c.args, &out, &errs), "%s: %s", name, errs.String())
		require.Contains(t, errs.String(), c.want, name)
		require.Empty(t, out.String(), name)
	}
	left, err := os.ReadDir(home)
	require.NoError(t, err)
	require.Empty(t, left)
}
