package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
)

// asProgram makes this test's binary the program itself.
const asProgram = "ROPEWALK_GPU_CHECK_ITSELF"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program runs gpu-check in a process of its own whose environment is a search path and else nothing.
func program(t *testing.T, path string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{asProgram + "=1", "PATH=" + path}
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	require.NotNil(t, cmd.ProcessState, err)
	return out.String(), complaints.String(), cmd.ProcessState.ExitCode()
}

// needNoDriver skips where there is one.
func needNoDriver(t *testing.T) {
	t.Helper()
	host, err := openDriver()
	require.NoError(t, err)
	if host != nil {
		require.NoError(t, host.Close())
		t.Skip("there is a driver here")
	}
}

func TestWithoutDriver(t *testing.T) {
	needNoDriver(t)
	file := filepath.Join(t.TempDir(), "out.json")
	stdout, stderr, code := program(t, "", "-o", file)
	require.Zero(t, code, stderr)
	for _, name := range partNames() {
		require.Contains(t, stdout, name+": skipped: no NVIDIA driver\n")
	}
	require.Contains(t, stdout, "Nothing was measured.")
	require.Empty(t, stderr)
	held := readReport(t, file)
	for _, name := range partNames() {
		p := held.part(t, name)
		require.Equal(t, bench.StatusSkipped, p.Status)
		require.Empty(t, p.Rows, "nothing is claimed")
	}
}

// TestMiniature runs every part on the processor, in one process that finds nothing but a Python.
func TestMiniature(t *testing.T) {
	pythontest.NeedLong(t)
	name := pythontest.Need(t, "TORCH", "torch", "transformers", "safetensors")
	python, err := exec.LookPath(name)
	require.NoError(t, err)
	python, err = filepath.Abs(python)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "out.json")
	stdout, stderr, code := program(
		t, filepath.Dir(python), "--device", torch.CPU, "--short", "--python", python, "-o", file,
	)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "say nothing about a GPU")

	held := readReport(t, file)
	require.NotEmpty(t, held.Versions["torch"])
	require.NotEmpty(t, held.Versions["python"])
	require.Positive(t, held.Machine.Cores)
	for _, p := range parts() {
		if p.name != "inventory" { // which asks the driver
			require.Equal(t, bench.StatusOK, held.part(t, p.name).Status, p.name)
		}
	}

	const updates = "miniature, 2 × 64 tokens, checkpointing on"
	require.Positive(t, figure(t, held, "tokens", updates, "tokens/s"))
	ours, loop := figure(t, held, "peer", "miniature: engine", "tokens/s"), figure(t, held, "peer",
		"miniature: plain loop, float32", "tokens/s")
	require.InEpsilon(t, ours/loop, figure(t, held, "peer", "miniature: engine ÷ the faster loop", "ratio"), 1e-9)
	share := held.part(t, "tax").Rows[0].Figures[1].Value
	require.True(t, share > 0 && share < 1, share)
	require.Positive(t, figure(t, held, "generate", "transformers", "engine ÷ it"))
	require.Less(t, figure(t, held, "generate", "|Δ log p| against Forward", "most"), 1e-5)
	require.Zero(t, figure(t, held, "generate", "flipped by another batch", "rows"))
	for _, who := range []string{"miniature: training", "miniature: sampling"} {
		require.InEpsilon(t, figure(t, held, "together", who, "together")/figure(t, held, "together", who,
			"tokens/s alone"), figure(t, held, "together", who, "share"), 1e-9)
		require.Greater(t, figure(t, held, "together", who, "GiB"), 0.1, "a process with torch in it")
	}
	require.Greater(t, figure(t, held, "save", "miniature, weights and optimiser", "GiB"),
		gib(12*miniature.model().Params))
	twice, killed := held.part(t, "deterministic").Rows[0], held.part(t, "kill").Rows
	require.Equal(t, twice.Note, killed[1].Note, "all checkpoints are equal")
	require.Less(t, figure(t, held, "kill", "miniature", "s to notice"),
		figure(t, held, "kill", "miniature", "until a model is loaded again"))
	require.Positive(t, figure(t, held, "parity", "greatest difference", "log-probability"),
		"two engines do not round alike")
}

func TestArguments(t *testing.T) {
	occupied := filepath.Join(t.TempDir(), "notes.json")
	require.NoError(t, os.WriteFile(occupied, []byte(`{"program": "another"}`), 0o644))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--only", "speed"}, `--only: there is no part "speed"; there are inventory, tokens,`},
		{[]string{"--sizes", "7B"}, `--sizes: there is no size "7B"`},
		{[]string{"--device", "tpu"}, `--device is "tpu"`},
		{[]string{"--limit", "0s"}, "--limit is 0s"},
		{[]string{"tokens"}, `"tokens" is no flag`},
		{[]string{"-o", ""}, "-o names no file"},
		{[]string{"-o", occupied}, "is there and holds something else"},
		{[]string{"--nonsense"}, "nonsense"},
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 2, run(t.Context(), c.args, &stdout, &stderr), c.args)
		require.Contains(t, stderr.String(), c.want)
		require.Empty(t, stdout.String())
	}
	var stdout, stderr bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"--help"}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "parity")
}

// held is a report that was read.
type held struct {
	head
	Parts map[string]outcome
}

func readReport(t *testing.T, file string) (out held) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

func (h held) part(t *testing.T, name string) outcome {
	t.Helper()
	require.Contains(t, h.Parts, name)
	return h.Parts[name]
}

// figure is a figure of a row of a part.
func figure(t *testing.T, h held, part, row, name string) float64 {
	t.Helper()
	for _, r := range h.part(t, part).Rows {
		for _, f := range r.Figures {
			if r.What == row && f.Name == name {
				return f.Value
			}
		}
	}
	require.Fail(t, "no such figure", "%s: %s: %s", part, row, name)
	return 0
}
