package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// manySessions is a realistic number of sessions that work at once for one shard of a rollout.
const manySessions = 64

// sessions measures cells, with many sessions at once.
func (b *benchmark) sessions(ctx context.Context) (err error) {
	maker, err := zygote.OpenSessions(zygote.Options{Python: b.python})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, maker.Close()) }()
	rate, err := b.cells(ctx, maker, manySessions)
	if err != nil {
		return err
	}
	b.report.Add(fmt.Sprintf("%d sessions", manySessions), bench.Of("cells/s", rate).AtLeast(20000))
	return nil
}

// cells returns the cells per second that n sessions run together, each running its cells in sequence, as the median of
// the rounds.
func (b *benchmark) cells(ctx context.Context, maker sandbox.Sessions, n int) (rate float64, err error) {
	counters := make([]counter, n)
	for i := range counters {
		if counters[i].session, err = maker.OpenSession(ctx, sandbox.PackagesBare, sandbox.Limits{}); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, counters[i].session.Close()) }()
		if err := counters[i].run(ctx, "x = 0"); err != nil {
			return 0, err
		}
	}
	var rates []float64
	for range b.rounds {
		group, ctx := errgroup.WithContext(ctx)
		before, began := total(counters), time.Now()
		for i := range counters {
			group.Go(func() error { return counters[i].count(ctx, b.round) })
		}
		if err := group.Wait(); err != nil {
			return 0, err
		}
		rates = append(rates, float64(total(counters)-before)/time.Since(began).Seconds())
	}
	for i := range counters {
		if err := counters[i].check(ctx); err != nil {
			return 0, err
		}
	}
	return bench.Median(rates), nil
}

// counter is a session that counts its cells.
type counter struct {
	session sandbox.Session
	n       int
	stdout  string // output of the last cell
}

func (c *counter) run(ctx context.Context, code string) error {
	r, err := c.session.Run(ctx, sandbox.Call{Code: code, Packages: sandbox.PackagesBare})
	if err == nil && r.Status != sandbox.StatusOK {
		err = fmt.Errorf("cell %q ended as %s: %s", code, r.Status, lastLine(r.Stderr))
	}
	c.stdout = r.Stdout
	return err
}

// count runs cells for the given time.
func (c *counter) count(ctx context.Context, least time.Duration) error {
	for began := time.Now(); time.Since(began) < least; c.n++ {
		if err := c.run(ctx, "x += 1"); err != nil {
			return err
		}
	}
	return nil
}

// check compares the session's own count with this one.
func (c *counter) check(ctx context.Context) error {
	err := c.run(ctx, "print(x)")
	if want := fmt.Sprintf("%d\n", c.n); err == nil && c.stdout != want {
		err = fmt.Errorf("the session counted %q cells of %d", c.stdout, c.n)
	}
	return err
}

func total(counters []counter) (n int) {
	for _, c := range counters {
		n += c.n
	}
	return n
}
