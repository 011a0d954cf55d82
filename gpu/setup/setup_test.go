package setup

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
)

// pretend writes a program that answers a probe as a Python with these versions would.
func pretend(t *testing.T, path, version, torch, transformers string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	text := fmt.Sprintf(
		"#!/bin/sh\necho '{\"version\": %q, \"packages\": {\"torch\": %q, \"transformers\": %q, "+
			"\"safetensors\": \"0.8.0\", \"peft\": \"0.21.2\"}}'\n",
		version, torch, transformers,
	)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	return path
}

func TestFind(t *testing.T) {
	const good, goodToo = "2.15.0", "5.23.0"
	for _, c := range []struct {
		name          string
		set           func(t *testing.T, path, state string) (named string)
		want, message string
	}{
		{"python3 of PATH", func(t *testing.T, path, state string) string {
			pretend(t, filepath.Join(path, "python3"), "3.12.1", good, goodToo)
			return ""
		}, "python3 of PATH", ""},
		{"own environment first", func(t *testing.T, path, state string) string {
			pretend(t, filepath.Join(path, "python3"), "3.12.1", good, goodToo)
			pretend(t, interpreter(filepath.Join(state, Folder)), "3.11.1", good, goodToo)
			return ""
		}, "the own environment", ""},
		{"an unfit own environment is passed over", func(t *testing.T, path, state string) string {
			pretend(t, filepath.Join(path, "python3"), "3.12.1", good, goodToo)
			pretend(t, interpreter(filepath.Join(state, Folder)), "3.11.1", "2.9", goodToo)
			return ""
		}, "python3 of PATH", ""},
		{"named", func(t *testing.T, path, state string) string {
			pretend(t, interpreter(filepath.Join(state, Folder)), "3.11.1", good, goodToo)
			return pretend(t, filepath.Join(path, "mine"), "3.12.1", good, goodToo)
		}, "ROPEWALK_PYTHON names it", ""},
		{"named and unfit: nothing else is tried", func(t *testing.T, path, state string) string {
			pretend(t, filepath.Join(path, "python3"), "3.12.1", good, goodToo)
			return pretend(t, filepath.Join(path, "mine"), "3.12.1", "2.10.0", goodToo)
		}, "", "mine (Python 3.12.1, ROPEWALK_PYTHON names it) cannot run the torch engine: torch 2.10.0, " +
			"needed is 2.11 or newer (`ropewalk gpu setup` installs what is needed)"},
		{
			"named and not there", func(t *testing.T, path, state string) string { return filepath.Join(path, "mine") },
			"", "ROPEWALK_PYTHON names ",
		},
		{
			"none", func(t *testing.T, path, state string) string { return "" }, "",
			"no Python was found: install python3",
		},
		{"no torch", func(t *testing.T, path, state string) string {
			pretend(t, filepath.Join(path, "python3"), "3.12.1", "", "")
			return ""
		}, "", "cannot run the torch engine: no torch and no transformers (`ropewalk gpu setup`"},
		{"old Python", func(t *testing.T, path, state string) string {
			pretend(t, filepath.Join(path, "python3"), "3.9.2", good, goodToo)
			return ""
		}, "", "Python 3.10 or newer is needed"},
		{"no Python at all", func(t *testing.T, path, state string) string {
			require.NoError(
				t,
				os.WriteFile(
					filepath.Join(path, "python3"), []byte("#!/bin/sh\necho 'no module' >&2; exit 3\n"), 0o755,
				),
			)
			return ""
		}, "", "exit status 3: no module"},
		{"something else", func(t *testing.T, path, state string) string {
			require.NoError(t, os.WriteFile(filepath.Join(path, "python3"), []byte("#!/bin/sh\necho hello\n"), 0o755))
			return ""
		}, "", "does not answer as a Python does"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, state := t.TempDir(), t.TempDir()
			named := c.set(t, path, state)
			t.Setenv("PATH", path)
			t.Setenv(python.Variable, named)
			p, err := Find(t.Context(), state)
			if c.message != "" {
				require.ErrorContains(t, err, c.message)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, p.Source)
			require.Equal(t, "2.15.0", p.Packages["torch"])
			require.True(t, filepath.IsAbs(p.Path))
		})
	}
}

// TestFindForLoRA: peft is asked for only where it is needed, and the message says how to get it.
func TestFindForLoRA(t *testing.T) {
	path, state := t.TempDir(), t.TempDir()
	t.Setenv("PATH", path)
	t.Setenv(python.Variable, "")
	without := pretend(t, filepath.Join(path, "python3"), "3.12.1", "2.15.0", "5.23.0")
	text, err := os.ReadFile(without)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(without, []byte(strings.Replace(string(text), "0.21.2", "", 1)), 0o755))
	p, err := Find(t.Context(), state)
	require.NoError(t, err)
	require.Empty(t, p.Packages["peft"])
	_, err = Find(t.Context(), state, Peft())
	require.ErrorContains(
		t, err, "cannot run the torch engine: no peft (`ropewalk gpu setup --with-lora` installs what is needed)",
	)
	pretend(t, interpreter(filepath.Join(state, Folder)), "3.11.1", "2.15.0", "5.23.0")
	p, err = Find(t.Context(), state, Peft())
	require.NoError(t, err)
	require.Equal(t, "the own environment", p.Source)
	require.Equal(t, "0.21.2", p.Packages["peft"])
}

// TestFindsARealPython asks the Python that tests compare with.
func TestFindsARealPython(t *testing.T) {
	exe, err := filepath.Abs(pythontest.Need(t, "TORCH", "torch", "transformers", "safetensors"))
	require.NoError(t, err)
	t.Setenv(python.Variable, exe)
	p, err := Find(t.Context(), t.TempDir())
	require.NoError(t, err)
	require.Equal(t, exe, p.Path)
	require.NotEmpty(t, p.Version)
}

// blocks are the entries of a list: a package in a version, with its digests.
func blocks(list string) []string {
	return strings.Split("\n"+strings.TrimSpace(strings.ReplaceAll(list, "\n    ", " ")), "\n")[1:]
}

// TestPinnedLists: what is installed is what the project is tested with, each with digests, and names no index.
func TestPinnedLists(t *testing.T) {
	for file, ours := range map[string][]byte{"requirements.txt": requirements, "uv.txt": uvRequirement} {
		theirs, err := os.ReadFile(filepath.Join("..", "..", ".ci", file))
		require.NoError(t, err)
		tested := blocks(string(theirs))
		for _, b := range blocks(string(ours)) {
			require.Contains(t, b, "--hash=sha256:")
			require.Contains(t, tested, b)
		}
		require.NotContains(t, string(ours), "index-url")
		require.NotContains(t, string(ours), "://")
	}
	for _, name := range []string{"\ntorch==", "\ntransformers==", "\nsafetensors==", "\nnumpy==", "\npeft=="} {
		require.Contains(t, "\n"+string(requirements), name)
	}
}

// TestInstallFailsWhole: what cannot be completed leaves nothing behind, and what was there before as it was.
func TestInstallFailsWhole(t *testing.T) {
	state, path := t.TempDir(), t.TempDir()
	pretend(t, interpreter(filepath.Join(state, Folder)), "3.11.1", "2.9", "5.23.0")
	base := pretend(t, filepath.Join(path, "python3"), "3.12.1", "", "") // which makes no environment
	_, err := Install(t.Context(), state, base, io.Discard)
	require.ErrorContains(t, err, "install uv")
	held, err := os.ReadDir(state)
	require.NoError(t, err)
	require.Len(t, held, 1)
	require.FileExists(t, interpreter(filepath.Join(state, Folder)))

	_, err = Install(t.Context(), state, filepath.Join(path, "none"), io.Discard)
	require.ErrorIs(t, err, ErrNoPython)
	_, err = Install(t.Context(), state, pretend(t, filepath.Join(path, "old"), "3.10.4", "", ""), io.Discard)
	require.ErrorContains(t, err, "is Python 3.10.4; the pinned packages need 3.11 or newer")
}

// TestInstallOnce: an environment that was made from this list is taken as it is.
func TestInstallOnce(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, Folder)
	pretend(t, interpreter(dir), "3.11.1", "2.15.0", "5.23.0")
	require.NoError(t, os.WriteFile(filepath.Join(dir, stampFile), []byte(stamp()), 0o600))
	p, err := Install(t.Context(), state, "/no/such/python", io.Discard)
	require.NoError(t, err)
	require.Equal(t, interpreter(dir), p.Path)
}
