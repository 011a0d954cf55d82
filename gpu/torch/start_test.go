package torch

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/transcript"
	"github.com/ropewalk/ropewalk/policy"
)

func TestStartsThatFail(t *testing.T) {
	for mode, want := range map[string]string{
		"protocol 2":      "it speaks protocol 2, this program 1",
		"old torch":       "it has torch 2.10.9, needed is 2.11 or newer",
		"no transformers": "it has no transformers",
		"ranks":           "it has 2 ranks, 1 were started",
		"dtype":           "computes in bfloat16 on cpu, asked for is float32 on cpu",
		"nonce":           "does not know this start's nonce",
		"garbage hello":   `begins with "GET "`,
		"mute":            "did not greet within",
		"never":           "did not greet within",
		"exit": "it ended before it greeted: exit status 3; it wrote last:\nfake engine is up\n" +
			"ModuleNotFoundError: No module named 'torch'",
	} {
		t.Run(mode, func(t *testing.T) {
			o, _ := faked(t, mode)
			if strings.Contains(want, "did not greet") {
				o.StartLimit = 300 * time.Millisecond
			}
			if mode == "garbage hello" { // the start goes on waiting for the engine
				o.StartLimit = 5 * time.Second
			}
			_, err := Open(t.Context(), o)
			require.ErrorContains(t, err, want)
			requireNothingLeft(t, o.Dir)
		})
	}
	t.Run("no such program", func(t *testing.T) {
		o, _ := faked(t)
		o.command = []string{"/no/such/python"}
		_, err := Open(t.Context(), o)
		require.ErrorIs(t, err, os.ErrNotExist)
		requireNothingLeft(t, o.Dir)
	})
	t.Run("cancelled", func(t *testing.T) {
		o, _ := faked(t, "never")
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := Open(ctx, o)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		requireNothingLeft(t, o.Dir)
	})
}

func TestOptionsRefused(t *testing.T) {
	for want, o := range map[string]Options{
		"no Python":         {},
		"device":            {Python: "p", Device: "tpu"},
		"dtype":             {Python: "p", Dtype: "int8"},
		"checkpointing":     {Python: "p", Checkpointing: "maybe"},
		"-1 ranks":          {Python: "p", Ranks: -1},
		"on the CPU":        {Python: "p", UUIDs: []string{"GPU-1"}},
		"1 devices for 2":   {Python: "p", Device: CUDA, UUIDs: []string{"GPU-1"}, Ranks: 2},
		"limit is negative": {Python: "p", HangLimit: -1},
	} {
		_, err := Open(t.Context(), o)
		require.ErrorIs(t, err, policy.ErrBadRequest)
		require.ErrorContains(t, err, want)
	}
}

// TestEnvironment: what finds devices and caches comes along, nothing else of the host's does.
func TestEnvironment(t *testing.T) {
	o, err := Options{
		Python: "p", Device: CUDA, UUIDs: []string{"GPU-a", "GPU-b"}, Deterministic: true, Threads: 3,
	}.withDefaults()
	require.NoError(t, err)
	env := o.environment([]string{
		"PATH=/bin", "NCCL_DEBUG=INFO", "CUDA_VISIBLE_DEVICES=0", "AWS_SECRET_ACCESS_KEY=x", "HF_TOKEN=x",
		"TORCH_API_KEY=x", "PYTHONPATH=/evil", "TEMPORAL_ADDRESS=x", "LD_PRELOAD=x",
	}, "/d")
	require.Equal(t, []string{
		"PATH=/bin", "NCCL_DEBUG=INFO", "CUDA_VISIBLE_DEVICES=0", "TMPDIR=/d", "HF_HUB_OFFLINE=1",
		"TRANSFORMERS_OFFLINE=1", "TOKENIZERS_PARALLELISM=false", "OMP_NUM_THREADS=3",
		"CUDA_VISIBLE_DEVICES=GPU-a,GPU-b", "CUBLAS_WORKSPACE_CONFIG=:4096:8",
	}, env)
	cpu := Options{Device: CPU, Threads: 1}
	require.Contains(t, cpu.environment(nil, "/d"), "CUDA_VISIBLE_DEVICES=")
	require.Contains(t, cpu.environment(nil, "/d"), "OMP_WAIT_POLICY=PASSIVE")
	require.NotContains(t, cpu.environment([]string{"OMP_WAIT_POLICY=ACTIVE"}, "/d"), "OMP_WAIT_POLICY=PASSIVE")
	for cache, host := range map[string][]string{
		"TORCHINDUCTOR_CACHE_DIR=/c/ropewalk/torchinductor":        {"HOME=/h", "XDG_CACHE_HOME=/c"},
		"TORCHINDUCTOR_CACHE_DIR=/h/.cache/ropewalk/torchinductor": {"HOME=/h"},
		"TORCHINDUCTOR_CACHE_DIR=/mine":                            {"HOME=/h", "TORCHINDUCTOR_CACHE_DIR=/mine"},
	} {
		env := strings.Join(o.environment(host, "/d"), " ")
		require.Contains(t, env, cache)
		require.Equal(t, 1, strings.Count(env, "TORCHINDUCTOR_CACHE_DIR"))
	}
	require.Equal(t, []string{
		"p", "-I", "/agent.py", "--rdzv-backend", "bound", "--rdzv-endpoint", "127.0.0.1:0", "--rdzv-id", "one-host",
		"--rdzv-conf", "place=0,timeout=120", "--nnodes", "1", "--nproc-per-node", "2", "--max-restarts", "0",
		"--no-python",
		"p", "-I", "/m.py", "--device", "cuda", "--dtype", "bfloat16", "--checkpointing", "auto", "--threads", "3",
		"--deterministic",
	}, o.commandLine("/m.py"))
}

// TestLinesAreBounded: a line without an end and a flood of lines cost no more than their bounds.
func TestLinesAreBounded(t *testing.T) {
	n := &transcript.Transcript{}
	lines := followOutput(
		strings.NewReader(strings.Repeat("x", 1<<20)+"\n"+strings.Repeat("flood\n", 1<<16)+"last"),
		slog.New(slog.NewTextHandler(n, nil)),
	)
	<-lines.end
	require.LessOrEqual(t, lines.size, maxTail+maxLine)
	require.True(t, strings.HasSuffix(lines.last(100), "flood\nlast"))
	require.Contains(t, lines.last(100), "lines before)")
	require.Less(t, len(n.String()), 1<<20)
	mark := lines.mark()
	require.Empty(t, lines.since(mark, 1000))
	lines.add("after", time.Now())
	require.Equal(t, "after", lines.since(mark, 1000))
}
