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

func TestEachIdHasItsOwnSession(t *testing.T) {
	a := &adders{}
	p := newPool(t, a, Settings{})
	require.Zero(t, p.Live(), "an interpreter starts with the first cell")
	require.Equal(t, "3", value(t, p, "x", "+3"))
	require.Equal(t, "5", value(t, p, "y", "+5"))
	require.Equal(t, "7", value(t, p, "x", "+4"))
	require.Equal(t, 2, p.Live())
	require.Len(t, a.opened, 2)
	_, err := p.RunNotebook(t.Context(), Notebook{ID: "z", Limits: sandbox.Limits{Wall: -1}, Cells: cellsOf("+1")})
	require.ErrorIs(t, err, sandbox.ErrBadCall)
	require.NoError(t, p.End(t.Context(), "x"))
	require.NoError(t, p.End(t.Context(), "x"), "an id that the pool does not know is no error")
	require.Equal(t, 1, a.live())
	require.NoError(t, p.Close())
	require.Zero(t, a.live())
	_, err = p.play(t.Context(), "y", "+1")
	require.ErrorIs(t, err, sandbox.ErrInfrastructure)
}

func TestLostSessionIsRestoredByReplay(t *testing.T) {
	a := &adders{}
	p := newPool(t, a, Settings{})
	value(t, p, "x", "+3")
	value(t, p, "x", "+4")
	a.last().lost.Store(true)
	require.Equal(t, "8", value(t, p, "x", "+1"))
	require.EqualValues(t, 3, a.last().cells.Load(), "two replayed cells and the new one")
	require.Len(t, a.opened, 2)
	require.Equal(t, 1, a.live())
}

func TestReplayThatDiffersIsRefused(t *testing.T) {
	for code, want := range map[string]string{
		"clock":    "cell 2 printed something else when run again",
		"stderr x": "cell 2 wrote something else to stderr when run again",
	} {
		a := &adders{}
		p := newPool(t, a, Settings{})
		value(t, p, "x", "+3")
		value(t, p, "x", code)
		a.last().lost.Store(true)
		require.ErrorContains(t, failure(t, p, "x", "+1"), want)
		require.Len(t, a.opened, 2, "another try would not help")
		require.ErrorContains(t, failure(t, p, "x", "+1"), want, "for good")
		require.Zero(t, a.live())
	}
}

// An interpreter that is killed while it runs recorded cells again proves nothing about them.
func TestAKillDuringAReplayIsNoDifference(t *testing.T) {
	a := &adders{}
	p := newPool(t, a, Settings{})
	value(t, p, "x", "+3")
	a.last().lost.Store(true)
	a.doomed = 1
	require.Equal(t, "4", value(t, p, "x", "+1"))
	require.Len(t, a.opened, 3)
	a.last().lost.Store(true)
	a.doomed = mostTries
	require.ErrorContains(t, failure(t, p, "x", "+1"), "run cell 1 again: session lost: the signal SIGKILL ended it")
}

func TestDifferenceNamesTheField(t *testing.T) {
	base := sandbox.Result{Status: "ok", Stdout: "o", Stderr: "e", Value: "v"}
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
	} {
		changed := base
		c.change(&changed)
		require.Equal(t, c.want, recorded(base).difference(recorded(changed)))
	}
}

func TestPlacesAreBounded(t *testing.T) {
	a := &adders{}
	ids := make([]string, 20)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	p := newPool(t, a, Settings{Most: 3})
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() {
			for n := range 10 {
				r, err := p.play(context.Background(), id, "+1")
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
	require.Equal(t, 3, p.Live())
}

func TestWaitForAPlaceEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &adders{}, Settings{Most: 1})
		running, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := p.play(running, "x", "slow")
			ended <- err
		}()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.play(short, "y", "+1")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		stop()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Equal(t, "2", value(t, p, "y", "+2"))
		require.Equal(t, "1", value(t, p, "x", "+1"), "the cancelled cell had no effect")
	})
}

func TestBreakageEndsTries(t *testing.T) {
	a := &adders{refuse: fmt.Errorf("%w: no memory", sandbox.ErrInfrastructure)}
	p := newPool(t, a, Settings{})
	require.ErrorContains(t, failure(t, p, "x", "+1"), "3 times over")
	a.refuse = nil
	require.Equal(t, "1", value(t, p, "x", "+1"), "breakage does not last")
	_, err := p.play(t.Context(), "x", "bad")
	require.ErrorIs(t, err, sandbox.ErrBadCall)
	require.Equal(t, "2", value(t, p, "x", "+1"))
}

func TestCloseEndsTheRunningCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &adders{}, Settings{})
		value(t, p, "x", "+1")
		ended := make(chan error, 1)
		go func() {
			_, err := p.play(context.Background(), "x", "slow")
			ended <- err
		}()
		synctest.Wait()
		require.NoError(t, p.Close())
		require.True(t, errors.Is(<-ended, sandbox.ErrInfrastructure))
	})
}
