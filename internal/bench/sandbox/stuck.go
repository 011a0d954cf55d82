package sandbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox"
)

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
