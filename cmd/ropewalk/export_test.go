package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/export"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// Bad arguments are refused before any server is joined or started, and leave nothing.
func TestExportRefusesBadArguments(t *testing.T) {
	t.Setenv("ROPEWALK_HOME", t.TempDir())
	folder := t.TempDir()
	t.Chdir(folder)
	for _, c := range []struct{ args, want string }{
		{"", "missing argument RUN"},
		{"R -o x", `run id "R"`},
		{"r", "-o: name a file"},
		{"r -o x --format csv", "--format: must be openai, sft, parquet or tensorboard, or with " +
			`--checkpoint huggingface or gguf, got "csv"`},
		{"r -o - --format parquet", "a Parquet file cannot be written to standard output"},
		{"r -o x --step 0", "--step: must be ≥ 1, got 0"},
		{"r -o x --step 1 --steps 1-2", "--step and --steps: choose one"},
		{"r -o x --steps 3", `--steps: must be A-B with 1 ≤ A ≤ B, got "3"`},
		{"r -o x --steps 3-2", "--steps: must be A-B"},
		{"r -o x --steps 0-2", "--steps: must be A-B"},
		{"r -o x --steps a-b", "--steps: must be A-B"},
		{"r -o x --gen -1", "--gen: must be ≥ 0, got -1"},
		{"r -o x --only best", `--only: must be kept, positive or all, got "best"`},
		{"r -o x --format sft --only all", "--only all: sft writes demonstrations"},
		{"r -o nosuch/x", "-o nosuch/x: a file cannot be made in nosuch"},
		{"r -o nosuch/", "-o nosuch/r.openai.jsonl: a file cannot be made in nosuch"},
		{"r -o /dev/null", "-o /dev/null: is neither a file nor a folder"},
		{"r -o x --format gguf", "--checkpoint: name latest, best or a step"},
		{"r --format tensorboard -o -", "-o: name a folder, which tensorboard --logdir shows"},
		{"r --format tensorboard -o x --gen 1", "--gen: selects trajectories"},
		{"r -o x --merge", "--checkpoint: name latest, best or a step"},
		{"r --checkpoint best", "-o: name a folder"},
		{"r --checkpoint best --format gguf", "-o: name a file"},
		{"r --checkpoint best -o -", "a checkpoint cannot be written to standard output"},
		{"r --checkpoint best -o x --format sft", `with --checkpoint it must be huggingface or gguf, got "sft"`},
		{"r --checkpoint best -o x --dtype int8", `--dtype: must be f32, f16 or bf16, got "int8"`},
		{"r --checkpoint best -o x --steps 1-2", "--steps: selects trajectories, and --checkpoint writes a policy"},
	} {
		t.Run(c.args, func(t *testing.T) {
			var out, messages bytes.Buffer
			require.Equal(t, exitBadInput, Run(context.Background(),
				append([]string{"export"}, strings.Fields(c.args)...), &out, &messages), messages.String())
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
	got, err = exportOptions{format: "openai", out: "x", step: 4, gen: 1, only: "kept"}.options("r",
		given("step", "gen", "only"))
	require.NoError(t, err)
	require.Equal(t, export.Options{Run: "r", Format: export.OpenAI, Only: export.Kept, First: 4, Last: 4, Gen: new(1)},
		got)
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
	con := &console{}
	failed, err := con.target(name, "r.openai.jsonl")
	require.NoError(t, err)
	_, err = failed.Write([]byte("half"))
	require.NoError(t, err)
	require.Equal(t, "half old", files())
	failed.discard()
	require.Equal(t, "old", files())

	for _, out := range []string{name, folder} {
		done, err := con.target(out, "x.jsonl")
		require.NoError(t, err)
		_, err = done.Write([]byte("new of " + filepath.Base(out)))
		require.NoError(t, err)
		require.NoError(t, done.keep())
		done.discard()
		require.Equal(t, "new of "+filepath.Base(out), files())
	}
}

func TestExportModelOptions(t *testing.T) {
	given := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}
	o := exportOptions{format: "openai", out: "x", model: modelFlags{checkpoint: "best", merge: true, dtype: "bf16"}}
	require.True(t, o.isModel(given("checkpoint")))
	require.False(t, o.isModel(given("output")))
	got, err := o.modelOptions("r", given("checkpoint", "merge"))
	require.NoError(t, err)
	require.Equal(t, export.ModelOptions{Run: "r", Checkpoint: "best", Form: export.HuggingFace, Merge: true,
		Dtype: checkpoint.BF16}, got)
	force := exportOptions{format: "openai", out: "x", model: modelFlags{force: true}}
	_, err = force.modelOptions("r", given("force"))
	require.EqualError(t, err, "--force: belongs to --checkpoint; a file of trajectories or metrics is replaced "+
		"without it")
	_, err = force.modelOptions("r", given("force", "merge"))
	require.EqualError(t, err, "--checkpoint: name latest, best or a step")
	o.format = "gguf"
	require.True(t, o.isModel(given("format")))
	got, err = o.modelOptions("r", given("format", "checkpoint"))
	require.NoError(t, err)
	require.Equal(t, export.GGUF, got.Form)
}
