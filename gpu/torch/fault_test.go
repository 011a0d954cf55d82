package torch

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// notes is a log that a test reads while it is written.
type notes struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (n *notes) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.Write(b)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.String()
}

// faked are options for a fake engine in a mode, and its log.
func faked(t testing.TB, mode ...string) (Options, *notes) {
	t.Helper()
	n := &notes{}
	return Options{
		command: append([]string{os.Args[0], "fake"}, mode...), Dir: t.TempDir(), Deterministic: true, Threads: 1,
		StartLimit: 20 * time.Second, HangLimit: 500 * time.Millisecond, CancelLimit: 300 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(n, nil)),
	}, n
}

func openFake(t testing.TB, mode string) (*Engine, *notes) {
	t.Helper()
	o, n := faked(t, mode)
	e, err := Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, e.Close())
		requireNothingLeft(t, o.Dir)
	})
	return e, n
}

// requireNothingLeft requires that no child lives or waits to be buried, and no socket or folder is left.
func requireNothingLeft(t testing.TB, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
	require.ErrorIs(t, err, syscall.ECHILD, "a child is left")
}

var one = policy.ForwardRequest{Role: policy.RolePolicy, Sequences: [][]int32{{1, 2, 3}}, Temperature: 1, Outputs: policy.OutLogProb}

func TestStartsThatFail(t *testing.T) {
	for mode, want := range map[string]string{
		"protocol 2":      "it speaks protocol 2, this program 1",
		"old torch":       `torch "2.10.9", needed is 2.11 or newer`,
		"no transformers": `transformers "", needed is 5.17 or newer`,
		"ranks":           "it has 2 ranks, 1 were started",
		"dtype":           "computes in bfloat16 on cpu, asked for is float32 on cpu",
		"nonce":           "does not know this start's nonce",
		"garbage hello":   `begins with "GET "`,
		"mute":            "did not greet within",
		"never":           "did not greet within",
		"exit":            "it ended before it greeted: exit status 3; it wrote last:\nfake engine is up\nModuleNotFoundError: No module named 'torch'",
	} {
		t.Run(mode, func(t *testing.T) {
			o, _ := faked(t, mode)
			if strings.Contains(want, "did not greet") || mode == "garbage hello" {
				o.StartLimit = time.Second
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

// TestLost: whatever loses an engine says so with ErrLost, its reason and what was seen; calls go on saying so until the
// next Load, which brings up another one; nothing is left of the first.
func TestLost(t *testing.T) {
	for _, c := range []struct {
		mode   string
		reason Reason
		want   []string
	}{
		{"die:forward", Died, []string{"signal: killed", "in a call of forward", "CUDA error: an illegal memory access"}},
		{"hang:forward", Hung, []string{"nothing got done for", "File \"model.py\", line 7 in forward"}},
		{"stop:forward", Hung, []string{"nothing got done for", "none: no rank answered"}},
		{"garbage:forward", Broke, []string{"a frame begins with"}},
		{"complain:forward", Broke, []string{`the engine says: protocol: array "tokens" is missing`}},
		{"other id:forward", Broke, []string{"an answer to call 3 while 2 was asked"}},
		{"unknown field:forward", Broke, []string{"unknown field"}},
		{"big:forward", Broke, []string{"a body of 41943"}},
		{"no array:forward", Broke, []string{`array "logprobs" is missing`}},
		{"surplus array:forward", Broke, []string{`array "values" is surplus`}},
		{"short array:forward", Broke, []string{`array "logprobs" holds 2 × F32, want 3 × F32`}},
		{"keeps:forward", Broke, []string{"a pass is kept as 4, keep being false"}},
		{"error internal:forward", Internal, []string{"it failed: internal: so it is"}},
		{"error protocol:forward", Broke, []string{"the engine says: so it is"}},
		{"error cancelled:forward", Internal, []string{"cancelled: so it is"}}, // that nobody had
		{"error surprise:forward", Internal, []string{"it failed: surprise: so it is"}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			e, log := openFake(t, c.mode)
			ctx, dir := t.Context(), ""
			dir, _ = fakeFolder(t, "w")
			require.NoError(t, e.Load(ctx, policy.RolePolicy, dir, true))
			first := e.latest()
			began := time.Now()
			_, err := e.Forward(ctx, one)
			require.ErrorIs(t, err, policy.ErrLost)
			require.Less(t, time.Since(began), 10*time.Second)
			var lost *LostError
			require.ErrorAs(t, err, &lost)
			require.Equal(t, c.reason, lost.Reason)
			for _, w := range c.want {
				require.ErrorContains(t, err, w)
			}
			require.Contains(t, log.String(), "engine lost")
			_, there := parents()[first.tree.root]
			require.False(t, there)
			require.NoDirExists(t, first.dir)

			_, err = e.Step(ctx, policy.RolePolicy, policy.StepOptions{})
			require.ErrorIs(t, err, policy.ErrLost)
			require.ErrorIs(t, e.Discard(ctx, policy.RolePolicy), policy.ErrLost)
			s, err := e.State(ctx, policy.RolePolicy)
			require.NoError(t, err)
			require.Zero(t, s, "nothing is resident")

			e.opts.command[2] = "ok"
			require.NoError(t, e.Load(ctx, policy.RolePolicy, dir, true))
			_, err = e.Forward(ctx, one)
			require.NoError(t, err)
			require.Equal(t, 2, e.Usage().Starts)
		})
	}
}

// A second answer to one call is seen when it comes, which is after the call.
func TestTwoAnswers(t *testing.T) {
	e, _ := openFake(t, "twice:discard")
	require.NoError(t, e.Discard(t.Context(), policy.RolePolicy))
	require.Eventually(t, func() bool { return e.Discard(t.Context(), policy.RolePolicy) != nil }, 5*time.Second, 10*time.Millisecond)
	require.ErrorIs(t, e.Discard(t.Context(), policy.RolePolicy), policy.ErrLost)
}

func TestDigestOfTheEngineIsHeldAgainstTheFolder(t *testing.T) {
	e, _ := openFake(t, "other digest:load")
	dir, _ := fakeFolder(t, "w")
	err := e.Load(t.Context(), policy.RolePolicy, dir, true)
	require.ErrorIs(t, err, policy.ErrLost)
	require.ErrorContains(t, err, `has the digest "feed"`)
}

// An engine that dies while nobody asks it anything is found out by the next call.
func TestDeathWhenIdle(t *testing.T) {
	e, _ := openFake(t, "ok")
	require.NoError(t, syscall.Kill(e.latest().tree.root, syscall.SIGKILL))
	<-e.latest().done
	_, err := e.Forward(t.Context(), one)
	require.ErrorIs(t, err, policy.ErrLost)
	require.ErrorContains(t, err, "signal: killed")
}

// Work that is slower than the limit but gets on is no hang.
func TestSlowIsNoHang(t *testing.T) {
	e, _ := openFake(t, "slow:forward")
	var heard []Progress
	var mu sync.Mutex
	e.OnProgress(func(p Progress) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, p)
	})
	_, err := e.Forward(t.Context(), one)
	require.NoError(t, err)
	mu.Lock()
	defer mu.Unlock()
	require.Greater(t, len(heard), 10)
	last := heard[len(heard)-1]
	require.Greater(t, last.Ticks, heard[0].Ticks)
	last.Ticks = 0
	require.Equal(t, Progress{Call: "forward", Phase: "layers", Done: 3, Total: 16, Memory: Memory{Allocated: 5 << 20, Peak: 9 << 20}}, last)
	u := e.Usage()
	require.EqualValues(t, 3, u.Tokens)
	require.EqualValues(t, 9<<20, u.Peak)
}

func TestCancel(t *testing.T) {
	t.Run("heeded", func(t *testing.T) {
		e, _ := openFake(t, "wait:forward")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := e.Forward(ctx, one)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, policy.ErrLost)
		require.NoError(t, e.Discard(t.Context(), policy.RolePolicy), "the engine serves on")
	})
	t.Run("ignored", func(t *testing.T) {
		e, _ := openFake(t, "stubborn:forward")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := e.Forward(ctx, one)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, policy.ErrLost)
		require.Less(t, time.Since(began), 5*time.Second)
		_, there := parents()[e.latest().tree.root]
		require.False(t, there)
	})
	t.Run("while another has the turn", func(t *testing.T) {
		e, _ := openFake(t, "slow:forward")
		first := make(chan error)
		go func() {
			_, err := e.Forward(t.Context(), one)
			first <- err
		}()
		require.Eventually(t, func() bool { return e.latest().pulse.call() != "" }, time.Second, time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := e.Forward(ctx, one)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, <-first)
	})
}

func TestErrorsOfTheContract(t *testing.T) {
	for kind, want := range map[string]error{
		"bad_request": policy.ErrBadRequest, "unsupported": policy.ErrBadRequest, "not_loaded": policy.ErrNotLoaded, "not_kept": policy.ErrNotKept,
		"out_of_memory": policy.ErrOutOfMemory, "corrupt": checkpoint.ErrCorrupt,
	} {
		t.Run(kind, func(t *testing.T) {
			e, _ := openFake(t, "error "+kind+":forward")
			_, err := e.Forward(t.Context(), one)
			require.ErrorIs(t, err, want)
			require.ErrorContains(t, err, "so it is")
			require.NoError(t, e.Discard(t.Context(), policy.RolePolicy), "the engine serves on")
			if kind == "out_of_memory" {
				require.ErrorContains(t, err, "the call was of 3 tokens, the longest sequence of 3")
			}
		})
	}
	e, _ := openFake(t, "error non_finite:step")
	dir, _ := fakeFolder(t, "w")
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, true))
	_, err := e.Step(t.Context(), policy.RolePolicy, policy.StepOptions{})
	var nf *policy.NonFiniteError
	require.ErrorAs(t, err, &nf)
	require.Equal(t, "model.norm.weight", nf.Name)
}

// One rank of two dies, in a session of its own: all end.
func TestRanks(t *testing.T) {
	o, _ := faked(t, "agent", "two")
	o.Ranks = 2
	for name, which := range map[string]int{"the one that speaks": 0, "the other": 1, "the agent": -1} {
		t.Run(name, func(t *testing.T) {
			e, err := Open(t.Context(), o)
			require.NoError(t, err)
			p := e.latest()
			require.Len(t, p.tree.ranks, 2)
			if which < 0 {
				require.NoError(t, syscall.Kill(p.tree.root, syscall.SIGKILL))
			} else {
				require.NoError(t, p.tree.ranks[which].Kill())
			}
			<-p.done
			for _, r := range p.tree.ranks {
				_, there := parents()[r.Pid]
				require.False(t, there)
			}
			_, err = e.Forward(t.Context(), one)
			require.ErrorIs(t, err, policy.ErrLost)
			require.NoError(t, e.Close())
			requireNothingLeft(t, o.Dir)
		})
	}
	t.Run("stacks of all", func(t *testing.T) {
		o.command[3] = "two"
		e, err := Open(t.Context(), o)
		require.NoError(t, err)
		p := e.latest()
		up := func() bool { return strings.Count(p.lines.last(maxTail), "fake engine is up") == 2 }
		require.Eventually(t, up, 5*time.Second, 10*time.Millisecond)
		p.hang(time.Second)
		require.Equal(t, 1, strings.Count(p.lost.Stacks, "Thread 0x1 of pid "+strconv.Itoa(p.tree.ranks[0].Pid)))
		require.Equal(t, 1, strings.Count(p.lost.Stacks, "Thread 0x1 of pid "+strconv.Itoa(p.tree.ranks[1].Pid)))
		require.NoError(t, e.Close())
		requireNothingLeft(t, o.Dir)
	})
}

func TestCloseInACall(t *testing.T) {
	e, _ := openFake(t, "stubborn:forward")
	failed := make(chan error)
	go func() {
		_, err := e.Forward(context.Background(), one)
		failed <- err
	}()
	require.Eventually(t, func() bool { return e.latest().pulse.call() != "" }, time.Second, time.Millisecond)
	require.NoError(t, e.Close())
	require.ErrorIs(t, <-failed, policy.ErrLost)
	require.ErrorIs(t, e.Load(t.Context(), policy.RolePolicy, t.TempDir(), false), policy.ErrLost)
	require.NoError(t, e.Close(), "closing twice")
}

// TestKeptPasses: a pass is its role's and its process's.
func TestKeptPasses(t *testing.T) {
	e, _ := openFake(t, "ok")
	ctx := t.Context()
	dir, _ := fakeFolder(t, "w")
	keep := one
	keep.Keep = true
	require.NoError(t, e.Load(ctx, policy.RolePolicy, dir, true))
	old, err := e.Forward(ctx, keep)
	require.NoError(t, err)
	require.ErrorIs(t, e.Backward(ctx, policy.RoleCritic, old.Kept, policy.Cotangents{}), policy.ErrNotKept)
	require.NoError(t, syscall.Kill(e.latest().tree.root, syscall.SIGKILL))
	<-e.latest().done
	require.NoError(t, e.Load(ctx, policy.RolePolicy, dir, true))
	again, err := e.Forward(ctx, keep)
	require.NoError(t, err)
	require.NotEqual(t, old.Kept, again.Kept)
	require.ErrorIs(t, e.Backward(ctx, policy.RolePolicy, old.Kept, policy.Cotangents{}), policy.ErrNotKept, "of a lost process")
	require.NoError(t, e.Backward(ctx, policy.RolePolicy, again.Kept, policy.Cotangents{}))
	require.ErrorIs(t, e.Backward(ctx, policy.RolePolicy, again.Kept, policy.Cotangents{}), policy.ErrNotKept)
	again, err = e.Forward(ctx, keep)
	require.NoError(t, err)
	require.NoError(t, e.Load(ctx, policy.RolePolicy, dir, true))
	require.ErrorIs(t, e.Backward(ctx, policy.RolePolicy, again.Kept, policy.Cotangents{}), policy.ErrNotKept, "loading drops what was kept")
	require.Equal(t, 3, e.Usage().Microbatches)
}

// TestSaveIsWholeOrNothing: what fails in mid-save leaves the folder as it was, and nothing beside it.
func TestSaveIsWholeOrNothing(t *testing.T) {
	for _, mode := range []string{"die:save", "error internal:save", "die:saved"} {
		t.Run(mode, func(t *testing.T) {
			e, _ := openFake(t, mode)
			ctx := t.Context()
			dir, _ := fakeFolder(t, "w")
			require.NoError(t, e.Load(ctx, policy.RolePolicy, dir, true))
			parent := t.TempDir()
			to := filepath.Join(parent, "to")
			require.NoError(t, os.Mkdir(to, 0o700))
			_, err := e.Save(ctx, policy.RolePolicy, to)
			require.ErrorIs(t, err, policy.ErrLost)
			held, err := os.ReadDir(parent)
			require.NoError(t, err)
			require.Len(t, held, 1, "nothing beside it")
			if mode != "die:saved" {
				files, err := os.ReadDir(to)
				require.NoError(t, err)
				require.Empty(t, files)
			}
		})
	}
	e, _ := openFake(t, "ok")
	ctx := t.Context()
	dir, _ := fakeFolder(t, "w")
	require.NoError(t, e.Load(ctx, policy.RolePolicy, dir, true))
	to := filepath.Join(t.TempDir(), "deep", "to")
	digest, err := e.Save(ctx, policy.RolePolicy, to)
	require.NoError(t, err)
	want, err := checkpoint.Digest(to)
	require.NoError(t, err)
	require.Equal(t, want, digest)
	s, err := e.State(ctx, policy.RolePolicy)
	require.NoError(t, err)
	require.Equal(t, digest, s.Digest)
	_, err = e.Save(ctx, policy.RolePolicy, to)
	require.ErrorIs(t, err, os.ErrExist)
}

func TestFoldersRefusedBeforeTheEngineSeesThem(t *testing.T) {
	e, _ := openFake(t, "die:load") // it would die of any load
	for name, c := range map[string]struct {
		role  policy.Role
		files map[string]string
		want  error
		text  string
	}{
		"no folder":      {policy.RolePolicy, nil, os.ErrNotExist, "config.json"},
		"no weights":     {policy.RolePolicy, map[string]string{"config.json": `{"model_type":"qwen3"}`}, os.ErrNotExist, "model.safetensors"},
		"broken config":  {policy.RolePolicy, map[string]string{"config.json": `{"model_type":`}, checkpoint.ErrCorrupt, "config.json"},
		"no model type":  {policy.RolePolicy, map[string]string{"config.json": `{}`, "model.safetensors": ""}, checkpoint.ErrCorrupt, "model_type"},
		"code":           {policy.RolePolicy, map[string]string{"config.json": `{"model_type":"x","auto_map":{}}`, "model.safetensors": ""}, policy.ErrBadRequest, "auto_map"},
		"critic, policy": {policy.RolePolicy, map[string]string{"config.json": `{"model_type":"x"}`, "model.safetensors": "", "value_head.safetensors": ""}, policy.ErrBadRequest, "value_head.safetensors"},
	} {
		dir := t.TempDir()
		for file, text := range c.files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
		}
		err := e.Load(t.Context(), c.role, dir, true)
		require.ErrorIs(t, err, c.want, name)
		require.ErrorContains(t, err, c.text, name)
	}
	require.False(t, e.latest().isLost())
}

// TestEnvironment: what finds devices and caches comes along, nothing else of the host's does.
func TestEnvironment(t *testing.T) {
	o, err := Options{Python: "p", Device: CUDA, UUIDs: []string{"GPU-a", "GPU-b"}, Deterministic: true, Threads: 3}.filled()
	require.NoError(t, err)
	env := o.environment([]string{
		"PATH=/bin", "NCCL_DEBUG=INFO", "CUDA_VISIBLE_DEVICES=0", "AWS_SECRET_ACCESS_KEY=x", "HF_TOKEN=x", "TORCH_API_KEY=x", "PYTHONPATH=/evil", "TEMPORAL_ADDRESS=x", "LD_PRELOAD=x",
	}, "/d")
	require.Equal(t, []string{
		"PATH=/bin", "NCCL_DEBUG=INFO", "CUDA_VISIBLE_DEVICES=0", "TMPDIR=/d", "HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "TOKENIZERS_PARALLELISM=false", "OMP_NUM_THREADS=3",
		"CUDA_VISIBLE_DEVICES=GPU-a,GPU-b", "CUBLAS_WORKSPACE_CONFIG=:4096:8",
	}, env)
	require.Equal(t, []string{
		"p", "-I", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "0", "--no-python",
		"p", "-I", "/m.py", "--device", "cuda", "--dtype", "bfloat16", "--checkpointing", "auto", "--threads", "3", "--deterministic",
	}, o.commandLine("/m.py"))
}

// TestLinesAreBounded: a line without an end and a flood of lines cost no more than their bounds.
func TestLinesAreBounded(t *testing.T) {
	n := &notes{}
	lines := follow(strings.NewReader(strings.Repeat("x", 1<<20)+"\n"+strings.Repeat("flood\n", 1<<16)+"last"), slog.New(slog.NewTextHandler(n, nil)))
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
