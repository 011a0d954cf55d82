package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

// adders are sessions whose interpreter adds numbers. A cell is "+3" (its value is the sum so far), "exit", "slow",
// "clock" (prints something new each time), "stdout x" or "stderr x". The name of a status gives that verdict.
type adders struct {
	mu     sync.Mutex
	opened []*adder
	clock  atomic.Int64
	refuse error  // of OpenSession
	signal string // that ends killed cells; "" means SIGKILL
	doomed int    // so many of the next interpreters are killed during their first cell
}

type adder struct {
	home   *adders
	sum    int
	lost   atomic.Bool // the next cell breaks it
	killed atomic.Bool // it is killed during the next cell
	ended  bool
	closed atomic.Bool
	cells  atomic.Int64
	busy   atomic.Int64
}

func (a *adders) OpenSession(_ context.Context, _ string, _ sandbox.Limits) (sandbox.Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refuse != nil {
		return nil, a.refuse
	}
	one := &adder{home: a}
	if a.doomed > 0 {
		a.doomed--
		one.killed.Store(true)
	}
	a.opened = append(a.opened, one)
	return one, nil
}

// live counts the interpreters that have not been closed.
func (a *adders) live() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.opened {
		if !one.closed.Load() {
			n++
		}
	}
	return n
}

func (a *adders) last() *adder {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.opened[len(a.opened)-1]
}

func (a *adder) Close() error { a.closed.Store(true); return nil }

func (a *adder) Run(ctx context.Context, cell sandbox.Call) (sandbox.Result, error) {
	if a.busy.Add(1) != 1 {
		panic("two cells at once")
	}
	defer a.busy.Add(-1)
	switch {
	case a.lost.Load() || a.closed.Load():
		return sandbox.Result{}, fmt.Errorf("%w: pulled out", sandbox.ErrSessionLost)
	case a.ended:
		return sandbox.Result{}, sandbox.ErrSessionEnded
	}
	a.cells.Add(1)
	r := sandbox.Result{Status: sandbox.StatusOK}
	word, rest, _ := strings.Cut(cell.Code, " ")
	switch {
	case a.killed.Load(), word == "suicide":
		r.Status, r.ExitCode, r.Signal, a.ended = sandbox.StatusKilled, -1, cmp.Or(a.home.signal, "SIGKILL"), true
	case word == "exit":
		a.ended = true
	case word == "slow":
		<-ctx.Done()
		a.lost.Store(true)
		return sandbox.Result{}, ctx.Err()
	case word == "clock":
		r.Stdout = fmt.Sprint(a.home.clock.Add(1))
	case word == "stdout":
		r.Stdout = rest
	case word == "stderr":
		r.Stderr = rest + fmt.Sprint(a.home.clock.Add(1))
	case word == "bad":
		return sandbox.Result{}, sandbox.ErrBadCall
	case strings.HasPrefix(word, "+"):
		var n int
		fmt.Sscan(word, &n)
		a.sum += n
		r.Value = fmt.Sprint(a.sum)
	default:
		r.Status, a.ended = sandbox.Status(word), true
	}
	return r, nil
}

// player runs trajectories cell by cell in a pool, and keeps what a record would.
type player struct {
	*Pool
	mu   sync.Mutex
	past map[string][]Ran
}

func newPool(t *testing.T, s sandbox.Sessions, settings Settings) *player {
	t.Helper()
	p := &player{Pool: New(s, settings), past: map[string][]Ran{}}
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// play runs the next cell of a trajectory.
func (p *player) play(ctx context.Context, id, code string) (sandbox.Result, error) {
	p.mu.Lock()
	past := p.past[id]
	p.mu.Unlock()
	cell := sandbox.Call{Code: code}
	results, err := p.RunNotebook(ctx, Notebook{ID: id, Past: past, Cells: []sandbox.Call{cell}})
	if err != nil {
		return sandbox.Result{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past[id] = append(slices.Clip(past), Ran{cell, results[0]})
	return results[0], nil
}

func value(t *testing.T, p *player, id, code string) string {
	t.Helper()
	r, err := p.play(t.Context(), id, code)
	require.NoError(t, err)
	return r.Value
}

func failure(t *testing.T, p *player, id, code string) error {
	t.Helper()
	_, err := p.play(t.Context(), id, code)
	require.ErrorIs(t, err, sandbox.ErrSessionLost)
	return err
}
