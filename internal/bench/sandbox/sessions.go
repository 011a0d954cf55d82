package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// sessions measures cells: with a session for each worker, and with one alone.
func (b *benchmark) sessions(ctx context.Context) (err error) {
	maker, err := zygote.OpenSessions(zygote.Options{Python: b.python})
	if err != nil {
		return err
	}
	defer closeAfter(maker, &err)
	all, err := b.cells(ctx, maker, b.executor.Workers())
	if err != nil {
		return err
	}
	one, err := b.cells(ctx, maker, 1)
	if err != nil {
		return err
	}
	b.result.Sessions, b.result.Session = &all, &one
	return nil
}

// cells gives the cells per second that n sessions run together, the median of the rounds.
func (b *benchmark) cells(ctx context.Context, maker sandbox.Sessions, n int) (float64, error) {
	var rates []float64
	for range b.rounds {
		counts := make([]int, n)
		group, ctx := errgroup.WithContext(ctx)
		began := time.Now()
		for i := range counts {
			group.Go(func() (err error) {
				counts[i], err = count(ctx, maker, b.round)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return 0, err
		}
		spent, total := time.Since(began), 0
		for _, c := range counts {
			total += c
		}
		rates = append(rates, float64(total)/spent.Seconds())
	}
	return bench.Median(rates), nil
}

// count has a session count its cells for the given time, opening and closing included, and returns how many there were.
func count(ctx context.Context, maker sandbox.Sessions, least time.Duration) (n int, err error) {
	s, err := maker.OpenSession(ctx, sandbox.PackagesBare, sandbox.Limits{})
	if err != nil {
		return 0, err
	}
	defer closeAfter(s, &err)
	cell := func(code string) (sandbox.Result, error) {
		r, err := s.Run(ctx, sandbox.Call{Code: code, Packages: sandbox.PackagesBare})
		if err == nil && r.Status != sandbox.StatusOK {
			err = fmt.Errorf("cell %q ended as %s: %s", code, r.Status, lastLine(r.Stderr))
		}
		return r, err
	}
	if _, err := cell("x = 0"); err != nil {
		return 0, err
	}
	for began := time.Now(); time.Since(began) < least; n++ {
		if _, err := cell("x += 1"); err != nil {
			return n, err
		}
	}
	r, err := cell("print(x)")
	if want := fmt.Sprintf("%d\n", n); err == nil && r.Stdout != want {
		err = fmt.Errorf("the session counted %q cells of %d", r.Stdout, n)
	}
	return n, err
}
