package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/export"
)

// Bad arguments are refused before any server is joined or started, and leave nothing.
func TestExportRefusesBadArguments(t *testing.T) {
	t.Setenv("ROPEWALK_HOME", t.TempDir())
	folder := t.TempDir()
	t.Chdir(folder)
	for _, c := range []struct{ args, want string }{
		{"", "missing argument RUN"},
		{"R -o x", `run id "R"`},
		{"r", "-o: say where to write"},
		{"r -o x --format csv", `--format: must be openai, sft or parquet, got "csv"`},
		{"r -o - --format parquet", "a Parquet file cannot be written to standard output"},
		{"r -o x --step 0", "--step: must be ≥ 1, got 0"},
		{"r -o x --step 1 --steps 1-2", "--step and --steps: choose one"},
		{"r -o x --steps 3", `--steps: must be A-B with 1 ≤ A ≤ B, got "3"`},
		{"r -o x --steps 3-2", "--steps: must be A-B"},
		{"r -o x --steps 0-2", "--steps: must be A-B"},
		{"r -o x --steps a-b", "--steps: must be A-B"},
		{"r -o x --gen -1", "--gen: must be ≥ 0, got -1"},
		{"r -o x --only best", `--only: must be kept, positive or all, got "best"`},
		{"r -o x --format sft --only all", "--only all: sft teaches what it writes"},
		{"r -o nosuch/x", "-o nosuch/x: cannot be written"},
		{"r -o nosuch/", "-o nosuch/r.openai.jsonl: cannot be written"},
		{"r -o /dev/null", "-o /dev/null: is neither a file nor a folder"},
	} {
		t.Run(c.args, func(t *testing.T) {
			var out, messages bytes.Buffer
			require.Equal(t, exitBadInput, Run(context.Background(), append([]string{"export"}, strings.Fields(c.args)...), &out, &messages), messages.String())
			require.Empty(t, out.String())
			require.Contains(t, messages.String(), c.want)
			require.NotContains(t, messages.String(), "starting")
			left, err := os.ReadDir(folder)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

func TestExportOptions(t *testing.T) {
	given := func(names ...string) func(string) bool {
		return func(name string) bool { return strings.Contains(strings.Join(names, " ")+" ", name+" ") }
	}
	got, err := exportOptions{format: "sft", out: "-", steps: "3-9"}.options("r", given("steps"))
	require.NoError(t, err)
	require.Equal(t, export.Options{Run: "r", Format: export.SFT, Only: export.KeptPositive, First: 3, Last: 9}, got)
	got, err = exportOptions{format: "openai", out: "x", step: 4, gen: 1, only: "kept"}.options("r", given("step", "gen", "only"))
	require.NoError(t, err)
	require.Equal(t, export.Options{Run: "r", Format: export.OpenAI, Only: export.Kept, First: 4, Last: 4, Gen: new(1)}, got)
}

// A file appears when it is whole; until then, and after a failure, what was there stays.
func TestExportTarget(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "x.jsonl")
	require.NoError(t, os.WriteFile(name, []byte("old"), 0o644))
	files := func() string {
		var out []string
		entries, err := os.ReadDir(folder)
		require.NoError(t, err)
		for _, e := range entries {
			text, err := os.ReadFile(filepath.Join(folder, e.Name()))
			require.NoError(t, err)
			out = append(out, string(text))
		}
		return strings.Join(out, " ")
	}
	a := &app{}
	failed, err := a.target(name, "r.openai.jsonl")
	require.NoError(t, err)
	_, err = failed.Write([]byte("half"))
	require.NoError(t, err)
	require.Equal(t, "half old", files())
	failed.discard()
	require.Equal(t, "old", files())

	for _, out := range []string{name, folder} {
		done, err := a.target(out, "x.jsonl")
		require.NoError(t, err)
		_, err = done.Write([]byte("new of " + filepath.Base(out)))
		require.NoError(t, err)
		require.NoError(t, done.keep())
		done.discard()
		require.Equal(t, "new of "+filepath.Base(out), files())
	}
}

func TestPassWords(t *testing.T) {
	require.Equal(t, "1: 0.420  2: 0.273", passWords([]float64{0.42, 0.2733}))
	require.Equal(t, 8, strings.Count(passWords(make([]float64, 100)), ":"))
}
