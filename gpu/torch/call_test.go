package torch

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/transcript"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// faked are options for a fake engine in a mode, and its log.
func faked(t testing.TB, mode ...string) (Options, *transcript.Transcript) {
	t.Helper()
	n := &transcript.Transcript{}
	hang, cancel := 20*time.Second, 20*time.Second // a loaded machine needs a fraction of it
	switch does, _, _ := strings.Cut(strings.Join(mode, " "), ":"); does {
	case "hang", "stop", "slow":
		hang = 500 * time.Millisecond
	case "stubborn":
		cancel = 300 * time.Millisecond
	}
	return Options{
		command: append([]string{os.Args[0], "fake"}, mode...), Dir: t.TempDir(), Deterministic: true, Threads: 1,
		Estimate:   func(tokens, longest int) int64 { return int64(tokens)<<30 + int64(longest)<<20 },
		StartLimit: 20 * time.Second, HangLimit: hang, CancelLimit: cancel,
		Logger: slog.New(slog.NewTextHandler(n, nil)),
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
	require.Equal(
		t,
		Progress{
			Call: "forward", Phase: "layers", Done: 3, Total: 16, Memory: Memory{Allocated: 5 << 20, Peak: 9 << 20},
		},
		last,
	)
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
	_, err := e.Step(t.Context(), policy.RolePolicy, policy.StepOptions{})
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
