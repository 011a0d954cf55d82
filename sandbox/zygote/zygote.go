package zygote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// workFolder is the folder of every call in the tier "full".
const workFolder = "/sandbox"

// Options say how to open an executor. The zero value is good.
type Options struct {
	Python  string       // interpreter; "" finds one
	Workers int          // calls at once; 0 takes one per CPU
	Dir     string       // where work folders are made if they are not mounts; "" takes the system's
	Tier    sandbox.Tier // the one tier to accept; "" takes the strongest that can be had
}

// Executor runs calls in children of warm interpreters.
type Executor struct {
	plan    plan
	version string
	dir     string // where scratch is made
	scratch string // holds the work folders of the weaker tiers; removed by Close
	spawner *spawner
	slots   chan *slot
	workers int

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
	halt    context.CancelFunc // ends the calls that Close finds running
	life    context.Context
}

// slot is the room for one call at a time; its zygote may be replaced.
type slot struct {
	index  int
	zygote *process // nil: to be started
}

var _ sandbox.Executor = (*Executor)(nil)

// Open finds an interpreter and the strongest tier, and starts the zygotes.
func Open(o Options) (*Executor, error) {
	pythons, err := findPythons(context.Background(), o.Python)
	if err != nil {
		return nil, err
	}
	if o.Workers <= 0 {
		o.Workers = runtime.NumCPU()
	}
	life, halt := context.WithCancel(context.Background())
	e := &Executor{dir: o.Dir, spawner: newSpawner(), slots: make(chan *slot, o.Workers), workers: o.Workers, life: life, halt: halt}
	if err := e.fill(pythons, o.Tier); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// fill settles the plan with the first zygote and then starts the others.
func (e *Executor) fill(pythons []string, only sandbox.Tier) error {
	first := &slot{}
	var faults []error
	for _, tier := range sandbox.Tiers() {
		for _, python := range pythons {
			if first.zygote != nil || only != "" && only != tier {
				continue
			}
			e.plan = plan{python: python, tier: tier}
			if err := e.start(first); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", tier, err))
			}
		}
	}
	if first.zygote == nil {
		return unopened(errors.Join(faults...))
	}
	e.version = first.zygote.version
	e.slots <- first
	for i := 1; i < e.workers; i++ {
		s := &slot{index: i}
		err := e.start(s)
		e.slots <- s
		if err != nil {
			return fmt.Errorf("%w: %w", sandbox.ErrInfrastructure, err)
		}
	}
	return nil
}

// unopened tells an interpreter out of reach from a machine without any tier.
func unopened(fault error) error {
	if errors.Is(fault, fs.ErrPermission) {
		return fmt.Errorf("%w: the user that calls run as cannot enter its folder; install one for all users (Debian: apt-get install python3): %w",
			sandbox.ErrNoPython, fault)
	}
	return fmt.Errorf("%w: no tier of isolation works here: %w", sandbox.ErrInfrastructure, fault)
}

// start gives a slot its zygote.
func (e *Executor) start(s *slot) (err error) {
	folder := workFolder
	if e.plan.tier != sandbox.TierFull {
		if folder, err = e.emptyFolder(s.index); err != nil {
			return err
		}
	}
	s.zygote, err = e.spawner.start(e.plan, folder)
	return err
}

// Isolation names the tier that was obtained.
func (e *Executor) Isolation() string { return string(e.plan.tier) }

// Python returns the interpreter's path and version.
func (e *Executor) Python() (path, version string) { return e.plan.python, e.version }

// Workers returns how many calls run at once.
func (e *Executor) Workers() int { return e.workers }

// Run implements sandbox.Executor. At most Workers calls of all batches run at once. A call that
// breaks (it is run twice) leaves the others to go on; hopeless says when the batch ends, and a
// zygote that cannot be started ends it at once.
func (e *Executor) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.running.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.life, func() { cancel(errClosed) })()

	results := make([]sandbox.Result, len(calls))
	broken := make(sandbox.CallErrors, len(calls))
	var ends tally
	arrived := time.Now()
	next := make(chan int)
	var hands sync.WaitGroup
	for range min(e.workers, len(calls)) {
		hands.Go(func() {
			for i := range next {
				result, err := e.run(ctx, calls[i], arrived)
				if err != nil {
					broken[i] = fmt.Errorf("run call %d: %w", i, err)
				}
				if ends.hopeless(err) || errors.Is(err, errNoZygote) {
					cancel(broken[i])
				}
				results[i] = result
			}
		})
	}
	feed(ctx, next, len(calls))
	hands.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if ends.broken > 0 {
		return results, broken
	}
	return results, nil
}

// mostBroken is how many calls of a batch may break before the first one that does not: a sandbox
// that is gone should not be tried for every call.
const mostBroken = 8

// tally counts how the calls of a batch ended.
type tally struct {
	mu               sync.Mutex
	verdicts, broken int
}

// hopeless counts one call and reports whether the batch should end with its breakage.
func (t *tally) hopeless(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.verdicts++
		return false
	}
	t.broken++
	return t.verdicts == 0 && t.broken >= mostBroken
}

// errNoZygote: no call is to blame when an interpreter cannot even be started.
var errNoZygote = errors.New("no interpreter can be started")

var errClosed = fmt.Errorf("%w: executor is closed", sandbox.ErrInfrastructure)

// feed offers the numbers below n until ctx ends.
func feed(ctx context.Context, next chan<- int, n int) {
	defer close(next)
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
			return
		}
	}
}

func (e *Executor) enter() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed
	}
	e.running.Add(1)
	return nil
}

// run waits for a slot and runs the call there. A call whose zygote broke is run once more.
func (e *Executor) run(ctx context.Context, call sandbox.Call, arrived time.Time) (sandbox.Result, error) {
	var s *slot
	select {
	case s = <-e.slots:
	case <-ctx.Done():
		return sandbox.Result{}, context.Cause(ctx)
	}
	defer func() { e.slots <- s }()
	queued := time.Since(arrived)
	var faults []error
	for range 2 {
		result, err := e.attempt(ctx, s, call)
		if err == nil {
			result.Timing.Queue = queued
			return result, nil
		}
		if ctx.Err() != nil {
			return sandbox.Result{}, context.Cause(ctx)
		}
		faults = append(faults, err)
	}
	return sandbox.Result{}, fmt.Errorf("%w, twice: %w", sandbox.ErrInfrastructure, errors.Join(faults...))
}

// attempt runs the call once; a zygote that fails is given up.
func (e *Executor) attempt(ctx context.Context, s *slot, call sandbox.Call) (sandbox.Result, error) {
	if s.zygote == nil {
		if err := e.start(s); err != nil {
			return sandbox.Result{}, fmt.Errorf("%w: %w", errNoZygote, err)
		}
	}
	result, err := s.zygote.execute(ctx, call, call.Limits.OrDefault())
	if err != nil && !errors.Is(err, context.Cause(ctx)) {
		s.zygote.stop()
		s.zygote = nil
	}
	return result, err
}

// Close ends what runs, every zygote, and removes the scratch folder. Closing twice is well.
func (e *Executor) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	e.mu.Unlock()
	e.halt()
	e.running.Wait()
	close(e.slots)
	for s := range e.slots {
		if s.zygote != nil {
			s.zygote.stop()
		}
	}
	e.spawner.close()
	return e.removeScratch()
}
