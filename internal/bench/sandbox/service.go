package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/client"
)

// plain is a call that needs no packages.
var plain = sandbox.Call{Code: "print(1+2)", Packages: sandbox.PackagesBare}

// listening is what the service writes once it takes calls.
var listening = regexp.MustCompile(`listening on http://(\S+): `)

// serve starts `ropewalk sandbox serve` at an address, and a client of it.
func (b *benchmark) serve(ctx context.Context, address string) (*bench.Started, patient, error) {
	if _, err := os.Stat(b.program); err != nil {
		return nil, patient{}, bench.Skip("%s is not there (make build)", b.program)
	}
	p := bench.Program{Path: b.program, Env: append(os.Environ(), "ROPEWALK_SANDBOX_PYTHON="+b.python)}
	s, address, err := p.Start(ctx, listening, "sandbox", "serve", "--listen", address)
	if err != nil {
		return nil, patient{}, err
	}
	c, err := client.Open(client.Options{Addresses: []string{address}})
	if err != nil {
		return nil, patient{}, errors.Join(err, s.Stop())
	}
	return s, patient{c, address}, nil
}

// anywhere is an address with a free port.
const anywhere = "127.0.0.1:0"

// patient is a client whose calls may wait longer than any burst takes: no call may fail because it waited.
type patient struct {
	*client.Client
	address string
}

// Run implements sandbox.Executor. Each call has its own key.
func (p patient) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	requests := make([]client.Request, len(calls))
	for i, call := range calls {
		requests[i] = client.Request{Call: call, QueueLife: 30 * time.Minute}
	}
	return p.Do(ctx, requests)
}

// once runs a call and checks its verdict.
func once(ctx context.Context, e sandbox.Executor, call sandbox.Call, output string) error {
	results, err := e.Run(ctx, []sandbox.Call{call})
	if err != nil {
		return err
	}
	return check(results[0], output)
}

// numbered runs the call, extended to print its own number. No two verdicts are the same.
func (s *subject) numbered(ctx context.Context, e sandbox.Executor, i int) error {
	call := s.call
	call.Code = fmt.Sprintf("%s; print(%d)", call.Code, i)
	return once(ctx, e, call, fmt.Sprintf("%s%d\n", s.output, i))
}

// cold measures the time from starting the service to its first verdict.
func (b *benchmark) cold(ctx context.Context) error {
	var took []float64
	for range b.rounds {
		began := time.Now()
		s, c, err := b.serve(ctx, anywhere)
		if err != nil {
			return err
		}
		err = once(ctx, c, plain, "3\n")
		took = append(took, bench.Milliseconds(time.Since(began)))
		if err := errors.Join(err, c.Close(), s.Stop()); err != nil {
			return err
		}
	}
	b.report.Add("cold start", bench.Of("ms", bench.Median(took)).AtMost(1500))
	return nil
}

// burstThrough sends all calls to the service at once. Times count from sending the first.
func (b *benchmark) burstThrough(ctx context.Context) (err error) {
	s, c, err := b.serve(ctx, anywhere)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(), s.Stop()) }()
	if err := once(ctx, c, b.call, b.output); err != nil { // from here on numpy and sympy are loaded
		return err
	}
	peak := watch(s.PID())
	took, faults := make([]time.Duration, b.burst), make([]error, b.burst)
	var wait sync.WaitGroup
	began := time.Now()
	for i := range took {
		wait.Go(func() {
			faults[i] = b.numbered(ctx, c, i)
			took[i] = time.Since(began)
		})
	}
	wait.Wait()
	spent := time.Since(began)
	most, err := peak()
	if err != nil {
		return err
	}
	p50, p99 := quantiles(took)
	b.report.Add("burst", bench.Of("calls", float64(b.burst)), bench.Of("calls/s", float64(b.burst)/spent.Seconds()),
		bench.Of("p50 ms", p50), bench.Of("p99 ms", p99), bench.Of("most MiB", float64(most)/(1<<20)))
	return errors.Join(append(faults, ctx.Err())...)
}

// watch samples the memory of a process and all its children until the returned function is called, which returns the
// highest number of bytes.
func watch(pid int) func() (int64, error) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	var most int64
	go func() {
		done <- bench.Sample(ctx, pid, 200*time.Millisecond, func(u bench.Usage) { most = max(most, u.Root+u.Others) })
	}()
	return func() (int64, error) {
		stop()
		err := <-done
		return most, err
	}
}

// underLoad is how many calls are in flight when the service is killed.
const underLoad = 64

// recover kills the service under load with SIGKILL, starts it again at the same address, and measures the time from
// the kill to the first verdict of the new one. The client that made the load must get exactly one verdict on each
// call, and the right one.
func (b *benchmark) recover(ctx context.Context) error {
	var took []float64
	for range b.rounds {
		ms, err := b.recoverOnce(ctx)
		if err != nil {
			return err
		}
		took = append(took, ms)
	}
	b.report.Add("recovery", bench.Of("ms", bench.Median(took)).AtMost(2000))
	return nil
}

func (b *benchmark) recoverOnce(ctx context.Context) (ms float64, err error) {
	s, loaded, err := b.serve(ctx, anywhere)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, loaded.Close(), s.Stop()) }()
	if err := once(ctx, loaded, b.call, b.output); err != nil {
		return 0, err
	}
	var stop atomic.Bool
	var next atomic.Int64
	var calls errgroup.Group
	for range underLoad {
		calls.Go(func() error {
			for !stop.Load() {
				if err := b.numbered(ctx, loaded, int(next.Add(1))); err != nil {
					return fmt.Errorf("a call under way when the service was killed: %w", err)
				}
			}
			return nil
		})
	}
	time.Sleep(b.round)
	began := time.Now()
	s.Kill()
	again, c, err := b.serve(ctx, loaded.address)
	if err == nil {
		s = again
		err = errors.Join(once(ctx, c, plain, "3\n"), c.Close())
		ms = bench.Milliseconds(time.Since(began))
		time.Sleep(b.round)
	}
	stop.Store(true)
	return ms, errors.Join(err, calls.Wait())
}
