package torch

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/wire"
	"github.com/ropewalk/ropewalk/internal/testing/transcript"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// faked are options for a fake engine in a mode, and its log.
func faked(t testing.TB, mode ...string) (Options, *transcript.Transcript) {
	t.Helper()
	n := &transcript.Transcript{}
	return Options{
		command: append([]string{os.Args[0], "fake"}, mode...), Dir: t.TempDir(), Deterministic: true, Threads: 1,
		Estimate:   func(tokens, longest int) int64 { return int64(tokens)<<30 + int64(longest)<<20 },
		StartLimit: 5 * time.Minute, HangLimit: 5 * time.Minute, CancelLimit: 5 * time.Minute,
		stackGrace: 8 * time.Second,
		Logger:     slog.New(slog.NewTextHandler(n, nil)),
	}, n
}

func openFake(t testing.TB, mode string) (*Engine, *transcript.Transcript) {
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

// requireNothingLeft requires that no child lives or waits to be buried, engines that tests share aside, and that no
// socket or folder is left.
func requireNothingLeft(t testing.TB, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	shared := sharedPIDs()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	for _, task := range tasks {
		pids, err := os.ReadFile(task)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // a thread that has ended
		}
		require.NoError(t, err)
		for _, pid := range strings.Fields(string(pids)) {
			line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			require.Contains(t, shared, pid, "a child is left: %q", line)
		}
	}
}

var one = policy.ForwardRequest{
	Role: policy.RolePolicy, Sequences: [][]int32{{1, 2, 3}}, Temperature: 1, Outputs: policy.OutLogProb,
}

// The next call detects an engine that died while it was idle.
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
	synctest.Test(t, func(t *testing.T) {
		host, engine := net.Pipe()
		p := &process{
			opts: Options{HangLimit: time.Minute}, conn: host, reader: wire.NewReader(host, 0),
			answers: make(chan wire.Frame, 1), done: make(chan struct{}),
		}
		go func() {
			asked, err := wire.NewReader(engine, 0).Next()
			require.NoError(t, err)
			for i := range uint64(10) {
				time.Sleep(59 * time.Second)
				p.pulse.beat(wire.Beat{At: 1, Ticks: 1 + i})
			}
			p.answers <- asked // with the id of the call
		}()
		_, err := p.call(t.Context(), outgoing{name: wire.CallDiscard, message: func(h wire.Head) any {
			return wire.OfRole{Head: h}
		}})
		require.NoError(t, err)
	})
}

// The beats of a call are its progress.
func TestProgress(t *testing.T) {
	e, _ := openFake(t, "slow:forward")
	var heard []wire.Beat
	hear(e, func(b wire.Beat) { heard = append(heard, b) })
	_, err := e.Forward(t.Context(), one)
	require.NoError(t, err)
	hear(e, nil)
	require.GreaterOrEqual(t, len(heard), 4)
	last := slices.MaxFunc(heard, func(a, b wire.Beat) int { return cmp.Compare(a.Ticks, b.Ticks) })
	require.GreaterOrEqual(t, last.Ticks, heard[0].Ticks+3)
	require.Equal(t, wire.Beat{Type: last.Type, At: heard[0].At, Ticks: last.Ticks, Phase: "layers", Done: 3, Total: 16,
		Memory: wire.Memory{Allocated: 5 << 20, Peak: 9 << 20}}, last)
	u := e.Usage()
	require.EqualValues(t, 3, u.Tokens)
	require.EqualValues(t, 9<<20, u.Peak)
}

// untilBeat returns a context that is cancelled once an engine says that it is working on a call.
func untilBeat(t *testing.T, e *Engine) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	hear(e, func(wire.Beat) { cancel() })
	return ctx
}

// hear calls f with the beats of the calls that run, in place of what heard them before.
func hear(e *Engine, f func(wire.Beat)) {
	p := &e.latest().pulse
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = f
}

func TestCancel(t *testing.T) {
	t.Run("heeded", func(t *testing.T) {
		e, _ := openFake(t, "wait:forward")
		_, err := e.Forward(untilBeat(t, e), one)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, policy.ErrLost)
		require.NoError(t, e.Discard(t.Context(), policy.RolePolicy), "the engine serves on")
	})
	t.Run("ignored", func(t *testing.T) {
		e, _ := openFake(t, "stubborn:forward")
		e.latest().opts.CancelLimit = 100 * time.Millisecond
		_, err := e.Forward(untilBeat(t, e), one)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, policy.ErrLost)
		_, there := parents()[e.latest().tree.root]
		require.False(t, there)
	})
	t.Run("while another has the turn", func(t *testing.T) {
		e, _ := openFake(t, "wait:forward")
		first, working := make(chan error), untilBeat(t, e)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := e.Forward(ctx, one)
			first <- err
		}()
		<-working.Done()
		brief, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		_, err := e.Forward(brief, one)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
		require.ErrorIs(t, <-first, context.Canceled)
	})
}

func TestErrorsOfTheContract(t *testing.T) {
	for kind, want := range map[string]error{
		"bad_request": policy.ErrBadRequest, "unsupported": policy.ErrBadRequest, "not_loaded": policy.ErrNotLoaded,
		"not_kept":      policy.ErrNotKept,
		"out_of_memory": policy.ErrOutOfMemory, "corrupt": checkpoint.ErrCorrupt,
	} {
		t.Run(kind, func(t *testing.T) {
			e, _ := openFake(t, "error "+kind+":forward")
			keep := one
			keep.Keep = true
			_, err := e.Forward(t.Context(), keep)
			require.ErrorIs(t, err, want)
			require.ErrorContains(t, err, "so it is")
			require.NoError(t, e.Discard(t.Context(), policy.RolePolicy), "the engine serves on")
			if kind == "out_of_memory" {
				require.ErrorContains(
					t, err, "the call was of 3 tokens, the longest sequence of 3; the estimate was 3075 MiB",
				)
			}
		})
	}
	e, _ := openFake(t, "error non_finite:step")
	dir, _ := fakeFolder(t, "w")
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, true))
	_, err := e.Step(t.Context(), policy.RolePolicy, policy.StepOptions{Rule: optimizer.AdamW{}})
	var nf *policy.NonFiniteError
	require.ErrorAs(t, err, &nf)
	require.Equal(t, "model.norm.weight", nf.Name)
}

func TestCloseInACall(t *testing.T) {
	e, _ := openFake(t, "stubborn:forward")
	failed := make(chan error)
	go func() {
		_, err := e.Forward(context.Background(), one)
		failed <- err
	}()
	require.Eventually(t, func() bool { return e.latest().pulse.call() != "" }, time.Minute, time.Millisecond)
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
	require.ErrorIs(
		t, e.Backward(ctx, policy.RolePolicy, old.Kept, policy.Cotangents{}), policy.ErrNotKept, "of a lost process",
	)
	require.NoError(t, e.Backward(ctx, policy.RolePolicy, again.Kept, policy.Cotangents{}))
	require.ErrorIs(t, e.Backward(ctx, policy.RolePolicy, again.Kept, policy.Cotangents{}), policy.ErrNotKept)
	again, err = e.Forward(ctx, keep)
	require.NoError(t, err)
	require.NoError(t, e.Load(ctx, policy.RolePolicy, dir, true))
	require.ErrorIs(
		t, e.Backward(ctx, policy.RolePolicy, again.Kept, policy.Cotangents{}), policy.ErrNotKept,
		"loading drops what was kept",
	)
	require.Equal(t, 3, e.Usage().Microbatches)
}
