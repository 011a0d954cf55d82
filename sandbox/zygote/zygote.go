package zygote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/sandbox"
)

// workFolder is the work folder of every call in the tier "full".
const workFolder = "/sandbox"

// Options say how to open an executor. The zero value accepts only the tier "full".
type Options struct {
	Python       string        // the interpreter; "" finds one
	Preferred    string        // the interpreter that is tried first where one is found; "" = the usual ones alone
	Workers      int           // calls at once; 0 means one per CPU
	Dir          string        // parent of work folders that are not mounts; "" means the system's folder
	Tier         sandbox.Tier  // the only tier to accept; "" means the strongest one available
	MinTier      sandbox.Tier  // the weakest tier to accept if Tier is ""; "" means TierFull
	Sets         []PackageSet  // nil means defaultSets; the first is the smallest
	Interpreters []Interpreter // for other languages; nil means defaultInterpreters
	Preload      []string      // sets to load in the background; others are loaded when a call first needs them
	// Landlock returns the kernel's version of Landlock; nil asks the kernel. Tests use it to simulate older kernels.
	Landlock func() (int, error)
}

// Executor runs calls in children of warm interpreters.
type Executor struct {
	plan      plan
	version   string
	dir       string // parent of scratch
	scratch   string // holds the work folders of the weaker tiers; removed by Close
	spawner   *spawner
	slots     *slots
	scheduler *scheduler
	workers   int

	forks, recycled atomic.Int64

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
	halt    context.CancelFunc // ends the calls that Close finds running
	life    context.Context
}

var _ sandbox.Executor = (*Executor)(nil)

// Open finds an interpreter and the strongest tier, and starts the zygotes.
func Open(o Options) (*Executor, error) {
	for _, tier := range []sandbox.Tier{o.Tier, o.MinTier} {
		if _, err := sandbox.ParseTier(string(tier)); tier != "" && err != nil {
			return nil, err
		}
	}
	if o.Sets == nil {
		o.Sets = defaultSets()
	}
	if o.Interpreters == nil {
		o.Interpreters = defaultInterpreters()
	}
	var modules []string
	for _, set := range o.Sets {
		modules = append(modules, set.Modules...)
	}
	pythons, err := findPythons(context.Background(), o, modules)
	if err != nil {
		return nil, err
	}
	if o.Workers <= 0 {
		o.Workers = runtime.NumCPU()
	}
	removeLeftGroups()
	life, halt := context.WithCancel(context.Background())
	e := &Executor{dir: o.Dir, spawner: newSpawner(), slots: newSlots(2 * o.Workers),
		scheduler: newScheduler(o.Workers), workers: o.Workers, life: life, halt: halt}
	if err := e.fill(pythons, o); err != nil {
		e.Close()
		return nil, err
	}
	for _, name := range o.Preload {
		if _, err := e.plan.sets.named(name); err != nil {
			e.Close()
			return nil, fmt.Errorf("preload: %w", err)
		}
	}
	if len(o.Preload) > 0 {
		e.running.Add(1)
		go e.preload(o.Preload)
	}
	return e, nil
}

// preload starts the sets' zygotes one at a time, so that the other places stay free for calls. A failure here occurs
// again, and is reported, when a call needs the set.
func (e *Executor) preload(names []string) {
	defer e.running.Done()
	for _, name := range names {
		set, err := e.plan.sets.named(name)
		if err != nil {
			continue
		}
		for range e.workers {
			if !e.ready(set) {
				return
			}
		}
	}
}

// ready starts a zygote of the set in a slot that has none. It returns false once the executor closes.
func (e *Executor) ready(set PackageSet) bool {
	if err := e.scheduler.enter(e.life); err != nil {
		return false
	}
	defer e.scheduler.leave()
	if s := e.slots.without(set.Name); s != nil {
		_, _ = e.zygote(s, set)
		e.slots.give(s)
	}
	return true
}

// fill decides on the plan by starting the first zygote, and then starts the others.
func (e *Executor) fill(pythons []python, o Options) error {
	first := e.slots.take("")
	defer e.slots.give(first)
	var faults []error
	for _, tier := range sandbox.Tiers() {
		for _, p := range pythons {
			if len(first.zygotes) > 0 || o.Tier != "" && o.Tier != tier {
				continue
			}
			e.plan = plan{python: p, tier: tier, sets: p.sets(o.Sets), others: present(o.Interpreters),
				bounds: callBounds()}
			if err := landlockHolds(tier, o.Landlock); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", tier, err))
			} else if len(e.plan.sets.available) == 0 {
				faults = append(faults, fmt.Errorf("%s has none of the package sets", p.Executable))
			} else if _, err := e.zygote(first, e.plan.sets.available[0]); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", tier, err))
			}
		}
	}
	if len(first.zygotes) == 0 {
		return unopened(faults)
	}
	smallest := e.plan.sets.available[0]
	e.version = first.zygotes[smallest.Name].version
	if err := o.tooWeak(e.plan.tier, faults); err != nil {
		return err
	}
	for range e.workers - 1 {
		s := e.slots.without(smallest.Name)
		_, err := e.zygote(s, smallest)
		e.slots.give(s)
		if err != nil {
			return fmt.Errorf("%w: %w", sandbox.ErrInfrastructure, err)
		}
	}
	return nil
}

// unopened distinguishes interpreters that calls cannot reach from a machine on which no tier works.
func unopened(faults []error) error {
	fault := errors.Join(faults...)
	reached := func(err error) bool { return !errors.Is(err, fs.ErrPermission) }
	if len(faults) > 0 && !slices.ContainsFunc(faults, reached) {
		return fmt.Errorf("%w: the user that calls run as cannot enter its folder; install one for all users "+
			"(Debian: apt-get install python3): %w",
			sandbox.ErrNoPython, fault)
	}
	return fmt.Errorf("%w: no tier of isolation works here: %w", sandbox.ErrInfrastructure, fault)
}

// recycleAfter is how many calls a zygote serves before it is replaced. This is a precaution; no zygote is known to
// need it.
const recycleAfter = 100_000

// zygote returns the slot's zygote of a set. It starts one if there is none.
func (e *Executor) zygote(s *slot, set PackageSet) (*process, error) {
	if z := s.zygotes[set.Name]; z != nil && z.calls < recycleAfter {
		return z, nil
	} else if z != nil {
		e.recycled.Add(1)
		s.drop(z)
	}
	folder := workFolder
	if e.plan.tier != sandbox.TierFull {
		var err error
		if folder, err = e.emptyFolder(fmt.Sprintf("%d-%s", s.index, set.Name)); err != nil {
			return nil, err
		}
	}
	z, err := e.spawner.start(e.plan, folder, set)
	if err != nil {
		return nil, err
	}
	s.zygotes[set.Name] = z
	return z, nil
}

// Stats reports what the executor has done and is doing.
func (e *Executor) Stats() sandbox.Stats {
	return sandbox.Stats{Workers: e.workers, Busy: e.scheduler.busy(), Aside: e.scheduler.aside.Load(),
		Forks: e.forks.Load(), Recycled: e.recycled.Load()}
}

// Isolation returns the name of the tier that was obtained.
func (e *Executor) Isolation() string { return string(e.plan.tier) }

// Python returns the interpreter's path and version.
func (e *Executor) Python() (path, version string) { return e.plan.python.Executable, e.version }

// Workers returns how many calls run at once, not counting those that were set aside.
func (e *Executor) Workers() int { return e.workers }

// Run implements sandbox.Executor. At most Workers calls of all batches run in the foreground at once, and as many in
// the background. A call that breaks, or that a signal from outside may have ended, is run a second time. If it breaks
// again, the others continue, until hopeless ends the batch. If a zygote cannot be started, the batch ends at
// once, and the error is that of the first call that broke.
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
	var runners sync.WaitGroup
	// admission is held from taking a call's number until the call has a place, so that calls get their places in their
	// order.
	var admission sync.Mutex
	admit := func() (i int, set PackageSet, more bool, err error) {
		admission.Lock()
		defer admission.Unlock()
		if i, more = <-next; more {
			set, err = e.admit(ctx, calls[i])
		}
		return i, set, more, err
	}
	var runner func()
	runner = func() {
		for {
			i, set, more, err := admit()
			if !more {
				return
			}
			replaced := false
			if err == nil {
				err = rescue.Do(func() (err error) {
					results[i], err = e.run(ctx, set, calls[i], arrived, func() {
						replaced = true
						runners.Go(runner)
					})
					return err
				})
			}
			if err != nil {
				broken[i] = fmt.Errorf("run call %d: %w", i, err)
			}
			if !errors.Is(err, sandbox.ErrBadCall) && ends.giveUp(err) || errors.Is(err, errNoZygote) {
				cancel(errGivenUp)
			}
			if replaced {
				return
			}
		}
	}
	// One goroutine more than there are workers, so that a running call can see that another one waits for a place.
	for range min(e.workers+1, len(calls)) {
		runners.Go(runner)
	}
	feed(ctx, next, len(calls))
	runners.Wait()
	switch err := context.Cause(ctx); {
	case errors.Is(err, errGivenUp):
		return nil, firstBreakage(broken)
	case err != nil:
		return nil, err
	}
	if slices.ContainsFunc(broken, func(err error) bool { return err != nil }) {
		return results, broken
	}
	return results, nil
}

// errGivenUp cancels the other calls of a batch that has failed as a whole.
var errGivenUp = errors.New("another call of the batch broke")

// firstBreakage returns the error of the lowest-numbered call that broke, leaving out calls that were only cancelled
// and calls that are themselves at fault.
func firstBreakage(broken sandbox.CallErrors) error {
	for _, err := range broken {
		if err != nil && !errors.Is(err, errGivenUp) && !errors.Is(err, sandbox.ErrBadCall) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", sandbox.ErrInfrastructure, errGivenUp)
}

// mostBroken is how many calls of a batch may break before the first one succeeds. If the sandbox is gone, there is no
// point in trying every call.
const mostBroken = 8

// tally counts how the calls of a batch ended.
type tally struct {
	mu               sync.Mutex
	verdicts, broken int
}

// giveUp counts one call and reports whether the batch should end with an error.
func (t *tally) giveUp(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.verdicts++
		return false
	}
	t.broken++
	return t.verdicts == 0 && t.broken >= mostBroken
}

// errNoZygote: an interpreter cannot be started. No call is to blame for that.
var errNoZygote = errors.New("no interpreter can be started")

var errClosed = fmt.Errorf("%w: executor is closed", sandbox.ErrInfrastructure)

// feed sends the numbers below n until ctx ends.
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

// accept returns the package set that a call needs. It fails if no executor could run the call.
func (e *Executor) accept(call sandbox.Call) (PackageSet, error) {
	if err := call.Validate(); err != nil {
		return PackageSet{}, err
	}
	if _, err := e.plan.interpreter(call.Language); err != nil {
		return PackageSet{}, err
	}
	return e.plan.sets.choose(call)
}

// admit checks a call and waits for a place in the foreground. run returns the place.
func (e *Executor) admit(ctx context.Context, call sandbox.Call) (PackageSet, error) {
	set, err := e.accept(call)
	if err != nil {
		return PackageSet{}, err
	}
	return set, e.scheduler.enter(ctx)
}

// run runs a call that has a place from admit. It calls aside when the call is set aside. A call whose zygote broke is
// run once more.
func (e *Executor) run(ctx context.Context, set PackageSet, call sandbox.Call, arrived time.Time,
	aside func()) (sandbox.Result, error) {
	p := &task{scheduler: e.scheduler, aside: func() {
		e.scheduler.aside.Add(1)
		aside()
		sandbox.Aside(ctx)
	}}
	defer func() { p.leave() }()
	var faults []error
	doubted := false
	for len(faults) < 2 {
		queued := time.Since(arrived)
		result, err := e.attempt(ctx, p, set, call)
		switch {
		case err == nil, doubted && errors.Is(err, errDoubtful):
			result.Timing.Queue = queued
			return result, nil
		case ctx.Err() != nil:
			return sandbox.Result{}, context.Cause(ctx)
		case errors.Is(err, errDoubtful):
			doubted = true
		case errors.Is(err, errPreempted):
			p = &task{scheduler: p.scheduler, background: true, restarts: p.restarts + 1}
			if err := e.scheduler.enterBackground(ctx, p); err != nil {
				return sandbox.Result{}, err
			}
		default:
			faults = append(faults, err)
		}
	}
	return sandbox.Result{}, fmt.Errorf("%w, twice: %w", sandbox.ErrInfrastructure, errors.Join(faults...))
}

// attempt runs the call once. It ends a zygote that fails.
func (e *Executor) attempt(ctx context.Context, p *task, set PackageSet, call sandbox.Call) (sandbox.Result, error) {
	s := e.slots.take(set.Name)
	defer e.slots.give(s)
	z, err := e.zygote(s, set)
	if err != nil {
		return sandbox.Result{}, fmt.Errorf("%w: %w", errNoZygote, err)
	}
	e.forks.Add(1)
	p.begin(z)
	result, err := z.execute(ctx, call, call.Limits.OrDefault(), p)
	if z.unusable || err != nil && !errors.Is(err, errPreempted) && !errors.Is(err, errDoubtful) &&
		!errors.Is(err, context.Cause(ctx)) {
		s.drop(z)
	}
	return result, err
}

// Close ends running calls and every zygote, and removes the scratch folder. A second call does nothing.
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
	for _, s := range e.slots.all() {
		for _, z := range s.zygotes {
			z.stop()
		}
	}
	e.spawner.close()
	return e.removeScratch()
}
