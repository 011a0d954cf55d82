package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/stretchr/testify/require"
)

func newPool(t *testing.T, s sandbox.Sessions, settings Settings, ids ...string) *Pool {
	t.Helper()
	p := New(s, settings)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	for _, id := range ids {
		require.NoError(t, p.Open(id, "", sandbox.Limits{}))
	}
	return p
}

func value(t *testing.T, p *Pool, id, code string) string {
	t.Helper()
	r, err := p.Run(t.Context(), id, sandbox.Call{Code: code})
	require.NoError(t, err)
	return r.Value
}

func failure(t *testing.T, p *Pool, id, code string) error {
	t.Helper()
	_, err := p.Run(t.Context(), id, sandbox.Call{Code: code})
	require.ErrorIs(t, err, sandbox.ErrSessionLost)
	return err
}

func TestEachIdHasItsOwnSession(t *testing.T) {
	a := &adders{}
	p := newPool(t, a, Settings{}, "x", "y")
	require.Zero(t, p.Counts().Live, "an interpreter starts with the first cell")
	require.Equal(t, "3", value(t, p, "x", "+3"))
	require.Equal(t, "5", value(t, p, "y", "+5"))
	require.Equal(t, "7", value(t, p, "x", "+4"))
	require.Equal(t, Counts{Known: 2, Live: 2, Opened: 2}, p.Counts())
	require.ErrorIs(t, p.Open("x", "", sandbox.Limits{}), ErrTaken)
	require.ErrorIs(t, p.Open("z", "", sandbox.Limits{Wall: -1}), sandbox.ErrBadCall)
	require.ErrorIs(t, failure(t, p, "z", "+1"), ErrUnknown)
	require.NoError(t, p.End(t.Context(), "x"))
	require.ErrorIs(t, p.End(t.Context(), "x"), ErrUnknown)
	require.Equal(t, 1, a.live())
	require.NoError(t, p.Close())
	require.Zero(t, a.live())
	_, err := p.Run(t.Context(), "y", sandbox.Call{})
	require.ErrorIs(t, err, sandbox.ErrInfrastructure)
	require.ErrorIs(t, p.Open("w", "", sandbox.Limits{}), sandbox.ErrInfrastructure)
}

func TestLostSessionIsRestoredByReplay(t *testing.T) {
	a := &adders{}
	p := newPool(t, a, Settings{}, "x")
	value(t, p, "x", "+3")
	value(t, p, "x", "+4")
	a.last().lost.Store(true)
	require.Equal(t, "8", value(t, p, "x", "+1"))
	require.EqualValues(t, 3, a.last().cells.Load(), "two replayed cells and the new one")
	require.Equal(t, Counts{Known: 1, Live: 1, Opened: 2, Replays: 1}, p.Counts())
	require.Equal(t, 1, a.live())
}

func TestReplayThatDiffersIsRefused(t *testing.T) {
	for code, want := range map[string]string{
		"clock":    "cell 2 printed something else when run again",
		"stderr x": "cell 2 wrote something else to stderr when run again",
	} {
		a := &adders{}
		p := newPool(t, a, Settings{}, "x")
		value(t, p, "x", "+3")
		value(t, p, "x", code)
		a.last().lost.Store(true)
		require.ErrorContains(t, failure(t, p, "x", "+1"), want)
		require.ErrorContains(t, failure(t, p, "x", "+1"), want, "for good")
		require.Len(t, a.opened, 2)
		require.Zero(t, a.live())
		require.Equal(t, 1, p.Counts().Lost)
	}
}

func TestDifferenceNamesTheField(t *testing.T) {
	base := sandbox.Result{Status: "ok", Stdout: "o", Stderr: "e", Value: "v",
		Files: []sandbox.File{{Name: "f", Content: []byte("c")}}}
	for _, c := range []struct {
		change func(*sandbox.Result)
		want   string
	}{
		{func(r *sandbox.Result) { r.Timing.Wall = time.Second }, ""},
		{func(r *sandbox.Result) { r.Status = "runtime_error" }, "ended otherwise"},
		{func(r *sandbox.Result) { r.ExitCode = 1 }, "ended otherwise"},
		{func(r *sandbox.Result) { r.Stdout = "oe"; r.Stderr = "" }, "printed something else"},
		{func(r *sandbox.Result) { r.Stderr = "" }, "wrote something else to stderr"},
		{func(r *sandbox.Result) { r.Value = "" }, "had another value"},
		{func(r *sandbox.Result) { r.Files = []sandbox.File{{Name: "fc"}} }, "left other files"},
	} {
		changed := base
		c.change(&changed)
		require.Equal(t, c.want, digestOf(base).difference(digestOf(changed)))
	}
}

func TestSessionThatEndedStaysEnded(t *testing.T) {
	for _, code := range []string{"exit", "timeout_cpu", "timeout_wall", "out_of_memory", "output_limit", "killed"} {
		a := &adders{}
		p := newPool(t, a, Settings{}, "x")
		value(t, p, "x", code)
		for range 2 {
			require.ErrorIs(t, failure(t, p, "x", "+1"), sandbox.ErrSessionEnded, code)
		}
		require.Len(t, a.opened, 1)
		require.Zero(t, a.live(), code)
	}
}

// If a cell exits and its interpreter is then closed, the replay ends the new interpreter too.
func TestExitIsReplayed(t *testing.T) {
	a := &adders{}
	p := newPool(t, a, Settings{}, "x")
	value(t, p, "x", "exit")
	a.last().lost.Store(true)
	require.ErrorIs(t, failure(t, p, "x", "+1"), sandbox.ErrSessionEnded)
}

func TestCellsThatAreTooLongAreNotKept(t *testing.T) {
	a := &adders{}
	p := newPool(t, a, Settings{Replay: 1000}, "x")
	for range 5 {
		value(t, p, "x", "+3")
	}
	require.Equal(t, "18", value(t, p, "x", "+3"), "it continues while its interpreter lives")
	a.last().lost.Store(true)
	require.ErrorContains(t, failure(t, p, "x", "+1"), "at most 1000 are kept")
}

func TestIdleInterpretersAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &adders{}
		p := newPool(t, a, Settings{Idle: time.Minute, Forget: time.Hour}, "x")
		value(t, p, "x", "+3")
		time.Sleep(2 * time.Minute)
		require.Zero(t, a.live())
		require.Equal(t, 1, p.Counts().Evicted)
		require.Equal(t, "4", value(t, p, "x", "+1"))
	})
}

func TestIdleTrajectoriesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &adders{}, Settings{Idle: time.Minute, Forget: time.Minute}, "x", "never used")
		value(t, p, "x", "+3")
		time.Sleep(3 * time.Minute)
		require.Zero(t, p.Counts().Known)
		require.ErrorIs(t, failure(t, p, "x", "+1"), ErrUnknown)
	})
}

func TestPlacesAreBounded(t *testing.T) {
	a := &adders{}
	ids := make([]string, 20)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	p := newPool(t, a, Settings{Most: 3}, ids...)
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() {
			for n := range 10 {
				r, err := p.Run(context.Background(), id, sandbox.Call{Code: "+1"})
				if err != nil || r.Value != fmt.Sprint(n+1) {
					t.Errorf("session %s: got %q, %v, want %d", id, r.Value, err, n+1)
				}
				if live := a.live(); live > 3 {
					t.Errorf("%d interpreters at once", live)
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, 3, p.Counts().Live)
	require.Positive(t, p.Counts().Evicted)
}

func TestLongestIdleIsEvicted(t *testing.T) {
	a := &adders{}
	p := newPool(t, a, Settings{Most: 2}, "x", "y", "z")
	for _, id := range []string{"x", "y", "x", "z"} {
		value(t, p, id, "+1")
	}
	require.True(t, a.opened[1].closed.Load(), "y's")
	require.False(t, a.opened[0].closed.Load(), "x's")
}

func TestWaitForAPlaceEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &adders{}, Settings{Most: 1}, "x", "y")
		running, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := p.Run(running, "x", sandbox.Call{Code: "slow"})
			ended <- err
		}()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.Run(short, "y", sandbox.Call{Code: "+1"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		stop()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Equal(t, "2", value(t, p, "y", "+2"))
		require.Equal(t, "1", value(t, p, "x", "+1"), "the cancelled cell had no effect")
	})
}

func TestBreakageEndsTries(t *testing.T) {
	a := &adders{refuse: fmt.Errorf("%w: no memory", sandbox.ErrInfrastructure)}
	p := newPool(t, a, Settings{}, "x")
	require.ErrorContains(t, failure(t, p, "x", "+1"), "3 times over")
	a.refuse = nil
	require.Equal(t, "1", value(t, p, "x", "+1"), "breakage does not last")
	_, err := p.Run(t.Context(), "x", sandbox.Call{Code: "bad"})
	require.ErrorIs(t, err, sandbox.ErrBadCall)
	require.Equal(t, "2", value(t, p, "x", "+1"))
}

func TestCloseEndsTheRunningCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &adders{}, Settings{}, "x")
		value(t, p, "x", "+1")
		ended := make(chan error, 1)
		go func() {
			_, err := p.Run(context.Background(), "x", sandbox.Call{Code: "slow"})
			ended <- err
		}()
		synctest.Wait()
		require.NoError(t, p.Close())
		require.True(t, errors.Is(<-ended, sandbox.ErrInfrastructure))
	})
}
