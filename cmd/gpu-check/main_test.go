package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/python/pythontest"
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
		require.Empty(t, p.Figures, "nothing is claimed")
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
	require.NotEmpty(t, held.head.Versions["torch"])
	require.NotEmpty(t, held.head.Versions["python"])
	require.Positive(t, held.head.Machine.Cores)
	for _, p := range parts() {
		if p.name != "inventory" { // which asks the driver
			require.Equal(t, bench.StatusOK, held.part(t, p.name).Status, p.name)
		}
	}

	tokens := figuresOf[tokensFigures](t, held, "tokens").Sizes[0]
	require.Positive(t, tokens.Pace.TokensPerSecond)
	require.Zero(t, tokens.Pace.MFU, "a processor's peak is not known")
	require.Zero(t, tokens.Peak)
	peer := figuresOf[againstFigures](t, held, "peer").Sizes[0]
	require.InEpsilon(t, peer.Engine.TokensPerSecond/peer.Loops[0].Pace.TokensPerSecond, peer.Ratio, 1e-9)
	tax := figuresOf[taxFigures](t, held, "tax")
	require.Len(t, tax.Microbatches, taxRepeats)
	require.Greater(t, tax.Median, 0.0)
	require.Less(t, tax.Median, 1.0)
	generate := figuresOf[generateFigures](t, held, "generate").Sizes[0]
	require.Positive(t, generate.Ratio)
	require.Less(t, generate.MaxDelta, 1e-5)
	require.Zero(t, generate.RowsFlipped)
	together := figuresOf[togetherFigures](t, held, "together").Sizes[0]
	require.Empty(t, together.Error)
	require.GreaterOrEqual(t, together.Steps, 2)
	require.GreaterOrEqual(t, together.Generations, 1)
	require.InEpsilon(t, together.TrainTogether/together.TrainAlone, together.TrainShare, 1e-9)
	require.InEpsilon(t, together.SampleTogether/together.SampleAlone, together.SampleShare, 1e-9)
	require.Positive(t, together.SecondsTogether)
	require.Greater(t, together.TrainerBytes, int64(100<<20), "a process with torch in it")
	require.Greater(t, together.SamplerBytes, int64(100<<20))
	save := figuresOf[saveFigures](t, held, "save").Sizes[0]
	require.True(t, save.Optimizer)
	require.Greater(t, save.SavedBytes, 12*tokens.Params)
	twice := figuresOf[deterministicFigures](t, held, "deterministic").Digests
	killed := figuresOf[killFigures](t, held, "kill")
	require.Equal(t, []string{twice[0], twice[0]}, killed.Digests)
	require.Less(t, killed.Noticed, killed.Serving)
	parity := figuresOf[parityFigures](t, held, "parity")
	require.Positive(t, parity.MaxLogProb, "two engines do not round alike")
	quickstart := figuresOf[quickstartFigures](t, held, "quickstart")
	require.Equal(t, 1, quickstart.Steps)
	require.Len(t, quickstart.Lines, 1)
	require.Positive(t, quickstart.Lines[0].Trajectories)
	require.Positive(t, quickstart.Usage.Trained)
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
	require.Contains(t, stderr.String(), "quickstart")
}

// held is a report that was read.
type held struct {
	head  head
	parts map[string]json.RawMessage
}

func readReport(t *testing.T, file string) held {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var out held
	require.NoError(t, json.Unmarshal(text, &out.head))
	require.NoError(t, json.Unmarshal(text, &out.parts))
	return out
}

func (h held) part(t *testing.T, name string) (out outcome) {
	t.Helper()
	require.Contains(t, h.parts, name)
	require.NoError(t, json.Unmarshal(h.parts[name], &out))
	return out
}

func figuresOf[F any](t *testing.T, h held, part string) (out F) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(h.part(t, part).Figures)))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&out))
	return out
}
