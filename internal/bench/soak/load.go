// Package soak keeps the sandbox under full load of good, failing and hostile programs and of sessions, and watches
// which resources this process and the interpreters use. It fails if any of these grows, if a verdict is wrong, if a
// call breaks, or if something is left behind. It runs from the repository's root.
//
// A *kind* is a way for a program to end. A *quantity* is a resource in use: memory, descriptors, processes, zombies,
// mounts, bytes on temporary file systems. Its *growth* is the slope of its samples in the second half, when everything
// has long been warm, times the length of that half (bench.Slope, which outliers do not move).
package soak

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// leastFor is how long a soak must last for its second half to be meaningful.
const leastFor = 10 * time.Second

// Case soaks the sandbox.
var Case = bench.Case{Name: "soak", Doc: "the sandbox under load for a long time", New: newCase}

func newCase(flags *flag.FlagSet) func(context.Context, *bench.Report) error {
	length := flags.Duration("for", 30*time.Minute, "how long")
	inFlight := flags.Int("in-flight", 16, "calls and sessions under way at any time")
	seed := flags.Uint64("seed", 1, "of the order of programs")
	return func(ctx context.Context, r *bench.Report) error {
		if *length < leastFor || *inFlight < 1 {
			return fmt.Errorf("-for must be %s at least, -in-flight 1", leastFor)
		}
		// Processes that outlive their parent become this process's children, so that it can see them.
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("become the parent of orphans: %w", err)
		}
		before, err := bench.Tree(os.Getpid())
		if err != nil {
			return err
		}
		executor, err := zygote.Open(zygote.Options{Python: bench.SandboxPython()})
		if err != nil {
			return err
		}
		sessions, err := zygote.OpenSessions(zygote.Options{Python: bench.SandboxPython()})
		if err != nil {
			return errors.Join(err, executor.Close())
		}
		r.Note("soaking", "for %s: tier %s, %d workers, %d in flight", *length, executor.Isolation(),
			executor.Workers(), *inFlight)
		err = soak(ctx, executor, sessions, r, *length, *inFlight, *seed)
		if err := errors.Join(err, sessions.Close(), executor.Close()); err != nil {
			return err
		}
		after, err := settle(before)
		for _, line := range left(before, after) {
			r.Add("left behind: "+line, bench.Of("faults", 1).AtMost(0))
		}
		return err
	}
}

// cellsOf is how many cells a session runs before it is closed.
const cellsOf = 20

// mostNoted is how many faults are kept with their full text.
const mostNoted = 20

// load runs programs and sessions and checks their verdicts.
type load struct {
	executor sandbox.Executor
	sessions sandbox.Sessions
	kinds    []kind
	calls    atomic.Int64

	mu     sync.Mutex
	faults []string // wrong verdicts and broken calls
}

func newLoad(ctx context.Context, e sandbox.Executor, s sandbox.Sessions) *load {
	l := &load{executor: e, sessions: s}
	results, err := e.Run(ctx, []sandbox.Call{{Code: "import numpy", Packages: sandbox.PackagesSympy}})
	l.kinds = kinds(err == nil && results[0].Status == sandbox.StatusOK)
	return l
}

// worker runs one program, or one session, after the other until ctx ends. Each worker has its own stream of random
// numbers.
func (l *load) worker(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		if random.IntN(100) == 0 {
			l.session(ctx)
			continue
		}
		l.program(ctx, pick(random, l.kinds))
	}
}

func (l *load) program(ctx context.Context, k kind) {
	i := l.calls.Add(1)
	results, err := l.executor.Run(ctx, []sandbox.Call{k.call(i)})
	if ctx.Err() != nil {
		return // the soak has ended
	}
	if err != nil {
		l.note(fmt.Sprintf("broken: %s: %v", k.name, err))
		return
	}
	r := results[0]
	if fault := k.fault(i, r); fault != nil {
		l.note("wrong: " + fault.Error())
	}
}

// fault returns what is wrong with a verdict, or nil.
func (k kind) fault(i int64, r sandbox.Result) error {
	if !slices.Contains(k.statuses, r.Status) {
		return fmt.Errorf("%s ended as %s, stderr %q", k.name, r.Status, r.Stderr)
	}
	if k.output != nil && r.Stdout != k.output(i) {
		return fmt.Errorf("%s printed %q, want %q", k.name, r.Stdout, k.output(i))
	}
	return nil
}

// session opens a session, counts its cells in it and closes it.
func (l *load) session(ctx context.Context) {
	s, err := l.sessions.OpenSession(ctx, sandbox.PackagesBare, sandbox.Limits{})
	if err == nil {
		err = errors.Join(l.cells(ctx, s), s.Close())
	}
	if err != nil && ctx.Err() == nil {
		l.note("broken: session: " + err.Error())
	}
}

func (l *load) cells(ctx context.Context, s sandbox.Session) error {
	for cell := range cellsOf {
		code := "x += 1; print(x)"
		if cell == 0 {
			code = "x = 0; print(x)"
		}
		l.calls.Add(1)
		r, err := s.Run(ctx, sandbox.Call{Code: code, Packages: sandbox.PackagesBare})
		if err != nil {
			return err
		}
		if want := printed(int64(cell)); r.Status != sandbox.StatusOK || r.Stdout != want {
			l.note(fmt.Sprintf("wrong: cell %d ended as %s and printed %q, want %q", cell, r.Status, r.Stdout, want))
		}
	}
	return nil
}

func (l *load) note(fault string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.faults) < mostNoted {
		l.faults = append(l.faults, fault)
	}
}

// soak runs the load for a time and adds what it has found.
func soak(ctx context.Context, e sandbox.Executor, s sandbox.Sessions, r *bench.Report, length time.Duration,
	inFlight int, seed uint64) error {
	l := newLoad(ctx, e, s)
	began := time.Now()
	under, end := context.WithTimeout(ctx, length)
	defer end()
	var workers sync.WaitGroup
	for worker := range inFlight {
		workers.Go(func() { l.worker(under, rand.New(rand.NewPCG(seed, uint64(worker)))) })
	}
	samples, err := watch(under, l, length)
	end()
	workers.Wait()
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	spent := time.Since(began).Seconds()
	r.Add("all", bench.Of("calls", float64(l.calls.Load())), bench.Of("calls/s", float64(l.calls.Load())/spent),
		bench.Of("samples", float64(len(samples))))
	for _, row := range grown(samples, length) {
		r.Add(row.What, row.Figures...)
	}
	for _, fault := range l.faults {
		r.Add(fault, bench.Of("faults", 1).AtMost(0))
	}
	return nil
}
