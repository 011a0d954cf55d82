package session

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

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

// Run runs one cell of a session that Open has registered, as RunNotebook does with a notebook's cells. A session that
// has ended is not begun again.
func (p *Pool) Run(ctx context.Context, id string, cell sandbox.Call) (sandbox.Result, error) {
	k, err := p.find(id)
	if err != nil {
		return sandbox.Result{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(k.life, func() { cancel(context.Cause(k.life)) })()
	if err := p.enter(ctx, k); err != nil {
		return sandbox.Result{}, err
	}
	defer p.leave(k)
	result, err := p.run(ctx, k, cell)
	if err != nil {
		return sandbox.Result{}, fmt.Errorf("run cell of session %q: %w", id, err)
	}
	return result, nil
}
