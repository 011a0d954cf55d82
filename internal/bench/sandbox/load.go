package sandbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox"
)

// caller runs one unit of work. It fails if the outcome is wrong.
type caller func(context.Context) error

// load is the result of a closed loop: each worker starts the next unit when it has the outcome of the last one.
type load struct {
	latencies []time.Duration // in no order
	spent     time.Duration
}

// perSecond returns how many units ended per second.
func (l load) perSecond() float64 { return float64(len(l.latencies)) / l.spent.Seconds() }

// drive keeps inFlight units running for at least the given time. Each worker runs at least one.
func drive(ctx context.Context, call caller, inFlight int, least time.Duration) (load, error) {
	workers := make([][]time.Duration, inFlight)
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for worker := range workers {
		group.Go(func() error {
			for time.Since(start) < least || len(workers[worker]) == 0 {
				began := time.Now()
				if err := call(ctx); err != nil {
					return err
				}
				workers[worker] = append(workers[worker], time.Since(began))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return load{}, err
	}
	return load{latencies: slices.Concat(workers...), spent: time.Since(start)}, nil
}

// quantiles returns the 50th and the 99th percentile in milliseconds. It sorts the latencies.
func quantiles(latencies []time.Duration) (p50, p99 float64) {
	slices.Sort(latencies)
	return bench.Milliseconds(bench.Quantile(latencies, 0.50)), bench.Milliseconds(bench.Quantile(latencies, 0.99))
}

// latency measures with 2 and with 64 calls in flight.
func (b *benchmark) latency(ctx context.Context) error {
	for _, c := range []struct {
		inFlight         int
		mostP50, mostP99 float64 // goals; 0 = none
	}{{2, 1.5, 5}, {64, 0, 110}} {
		if _, err := drive(ctx, b.one, c.inFlight, b.round/10); err != nil {
			return err
		}
		var p50, p99 []float64
		for range b.rounds {
			l, err := drive(ctx, b.one, c.inFlight, b.round)
			if err != nil {
				return err
			}
			middle, late := quantiles(l.latencies)
			p50, p99 = append(p50, middle), append(p99, late)
		}
		middle := bench.Of("p50 ms", bench.Median(p50))
		if c.mostP50 > 0 {
			middle = middle.AtMost(c.mostP50)
		}
		b.report.Add(fmt.Sprintf("latency, %d in flight", c.inFlight), middle,
			bench.Of("p99 ms", bench.Median(p99)).AtMost(c.mostP99))
	}
	return nil
}

// stuckRounds is how often good calls run alone and among endless loops. It is low because the loops take long.
const stuckRounds = 3

// endless is a program that only its limits end.
const endless = "while True: pass"

// stuck measures what good calls lose to endless loops among them: the share of throughput, up to the last good call's
// verdict. All calls are submitted at once, in an order shuffled with a fixed seed.
func (b *benchmark) stuck(ctx context.Context) error {
	var losses []float64
	for round := range min(stuckRounds, b.rounds) {
		alone, err := b.goodRate(ctx, 0, round)
		if err != nil {
			return err
		}
		among, err := b.goodRate(ctx, b.loops, round)
		if err != nil {
			return err
		}
		losses = append(losses, 1-among/alone)
	}
	b.report.Add("endless loops among good calls", bench.Of("share lost", bench.Median(losses)).AtMost(0.15))
	return nil
}

// goodRate runs good calls and loops at once and returns the good calls per second. Loops that still run when the last
// good call has its verdict are cancelled.
func (b *benchmark) goodRate(ctx context.Context, loops, seed int) (float64, error) {
	order := rand.New(rand.NewPCG(6, uint64(seed))).Perm(b.good + loops)
	faults := make([]error, len(order))
	var good, all sync.WaitGroup
	good.Add(b.good)
	among, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	for _, i := range order {
		all.Go(func() {
			if i < b.good {
				defer good.Done()
				faults[i] = b.one(ctx)
				return
			}
			if faults[i] = b.loop(among); context.Cause(among) == errGoodDone {
				faults[i] = nil
			}
		})
	}
	good.Wait()
	took := time.Since(began)
	cancel(errGoodDone)
	all.Wait()
	return float64(b.good) / took.Seconds(), errors.Join(faults...)
}

var errGoodDone = errors.New("the good calls are done")

// loop runs an endless loop until it ends.
func (b *benchmark) loop(ctx context.Context) error {
	results, err := b.executor.Run(ctx, []sandbox.Call{{Code: endless, Packages: b.call.Packages}})
	if err != nil {
		return err
	}
	if s := results[0].Status; s != sandbox.StatusTimeoutCPU && s != sandbox.StatusTimeoutWall {
		return fmt.Errorf("an endless loop ended as %s", s)
	}
	return nil
}
