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

	"github.com/ropewalk/ropewalk/sandbox"
)

// workFolder is the folder of every call in the tier "full".
const workFolder = "/sandbox"

// Options say how to open an executor. The zero value takes the tier "full" and nothing weaker.
type Options struct {
	Python       string        // interpreter; "" finds one
	Workers      int           // calls at once; 0 takes one per CPU
	Dir          string        // where work folders are made if they are not mounts; "" takes the system's
	Tier         sandbox.Tier  // the one tier to accept; "" takes the strongest that can be had
	MinTier      sandbox.Tier  // the weakest tier to accept where Tier is ""; "" accepts TierFull alone
	Sets         []PackageSet  // nil takes DefaultSets; the first is the smallest
	Interpreters []Interpreter // of other languages; nil takes DefaultInterpreters
	Preload      []string      // sets that are loaded in the background; others are when a call first needs them
}

// Executor runs calls in children of warm interpreters.
type Executor struct {
	plan    plan
	version string
	dir     string // where scratch is made
	scratch string // holds the work folders of the weaker tiers; removed by Close
	spawner *spawner
	slots   *slots
	lanes   *lanes
	workers int

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
		o.Sets = DefaultSets()
	}
	if o.Interpreters == nil {
		o.Interpreters = DefaultInterpreters()
	}
	var modules []string
	for _, set := range o.Sets {
		modules = append(modules, set.Modules...)
	}
	pythons, err := findPythons(context.Background(), o.Python, modules)
	if err != nil {
		return nil, err
	}
	if o.Workers <= 0 {
		o.Workers = runtime.NumCPU()
	}
	removeLeftGroups()
	life, halt := context.WithCancel(context.Background())
	e := &Executor{dir: o.Dir, spawner: newSpawner(), slots: newSlots(2 * o.Workers), lanes: newLanes(o.Workers), workers: o.Workers, life: life, halt: halt}
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

// preload starts the sets' zygotes, one at a time, so that the other places stay free for calls. What fails here
// fails again, and is told, when a call needs it.
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

// ready starts a zygote of the set where there is none; false once the executor closes.
func (e *Executor) ready(set PackageSet) bool {
	if err := e.lanes.enter(e.life); err != nil {
		return false
	}
	defer e.lanes.leave()
	if s := e.slots.without(set.Name); s != nil {
		_, _ = e.zygote(s, set)
		e.slots.give(s)
	}
	return true
}

// fill settles the plan with the first zygote and then starts the others.
func (e *Executor) fill(pythons []python, o Options) error {
	first := e.slots.take("")
	defer e.slots.give(first)
	var faults []error
	for _, tier := range sandbox.Tiers() {
		for _, p := range pythons {
			if len(first.zygotes) > 0 || o.Tier != "" && o.Tier != tier {
				continue
			}
			e.plan = plan{python: p, tier: tier, sets: p.sets(o.Sets), others: present(o.Interpreters)}
			if len(e.plan.sets.there) == 0 {
				faults = append(faults, fmt.Errorf("%s has none of the package sets", p.Executable))
			} else if _, err := e.zygote(first, e.plan.sets.there[0]); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", tier, err))
			}
		}
	}
	if len(first.zygotes) == 0 {
		return unopened(faults)
	}
	smallest := e.plan.sets.there[0]
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

// unopened tells interpreters out of reach from a machine without any tier.
func unopened(faults []error) error {
	fault := errors.Join(faults...)
	reached := func(err error) bool { return !errors.Is(err, fs.ErrPermission) }
	if len(faults) > 0 && !slices.ContainsFunc(faults, reached) {
		return fmt.Errorf("%w: the user that calls run as cannot enter its folder; install one for all users (Debian: apt-get install python3): %w",
			sandbox.ErrNoPython, fault)
	}
	return fmt.Errorf("%w: no tier of isolation works here: %w", sandbox.ErrInfrastructure, fault)
}

// recycleAfter is how many calls a zygote serves before it is replaced, as a precaution: none is known to need it.
const recycleAfter = 100_000

// zygote returns the slot's zygote of a set, started if there is none.
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

// Stats tells what the executor has done and is doing.
func (e *Executor) Stats() sandbox.Stats {
	return sandbox.Stats{Workers: e.workers, Busy: e.lanes.busy(), Aside: e.lanes.aside.Load(), Forks: e.forks.Load(), Recycled: e.recycled.Load()}
}

// Isolation names the tier that was obtained.
func (e *Executor) Isolation() string { return string(e.plan.tier) }

// Python returns the interpreter's path and version.
func (e *Executor) Python() (path, version string) { return e.plan.python.Executable, e.version }

// Workers returns how many calls run at once, those that were set aside not counted.
func (e *Executor) Workers() int { return e.workers }

// Run implements sandbox.Executor. At most Workers calls of all batches run at once, and as many again that were set
// aside. A call that breaks (it is run twice) leaves the others to go on; hopeless says when the batch ends, and a
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
	var hand func()
	hand = func() {
		for i := range next {
			replaced := false
			result, err := e.run(ctx, calls[i], arrived, func() {
				replaced = true
				hands.Go(hand)
			})
			if err != nil {
				broken[i] = fmt.Errorf("run call %d: %w", i, err)
			}
			if !errors.Is(err, sandbox.ErrBadCall) && ends.hopeless(err) || errors.Is(err, errNoZygote) {
				cancel(broken[i])
			}
			results[i] = result
			if replaced {
				return
			}
		}
	}
	// One more than run at once: who has a place sees that somebody waits for it.
	for range min(e.workers+1, len(calls)) {
		hands.Go(hand)
	}
	feed(ctx, next, len(calls))
	hands.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(broken, func(err error) bool { return err != nil }) {
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

// accept says why a call cannot be run by anyone, or which packages it needs.
func (e *Executor) accept(call sandbox.Call) (PackageSet, error) {
	if err := call.Validate(); err != nil {
		return PackageSet{}, err
	}
	if _, err := e.plan.interpreter(call.Language); err != nil {
		return PackageSet{}, err
	}
	return e.plan.sets.choose(call)
}

// run waits for a place and runs the call there; aside is told when it is set aside. A call whose zygote broke is run
// once more.
func (e *Executor) run(ctx context.Context, call sandbox.Call, arrived time.Time, aside func()) (sandbox.Result, error) {
	set, err := e.accept(call)
	if err != nil {
		return sandbox.Result{}, err
	}
	if err := e.lanes.enter(ctx); err != nil {
		return sandbox.Result{}, err
	}
	p := &patience{lanes: e.lanes, aside: func() {
		e.lanes.aside.Add(1)
		aside()
		sandbox.Aside(ctx)
	}}
	defer func() { p.leave() }()
	var faults []error
	for len(faults) < 2 {
		queued := time.Since(arrived)
		result, err := e.attempt(ctx, p, set, call)
		switch {
		case err == nil:
			result.Timing.Queue = queued
			return result, nil
		case ctx.Err() != nil:
			return sandbox.Result{}, context.Cause(ctx)
		case errors.Is(err, errTurnOver):
			p = &patience{lanes: p.lanes, long: true, begun: p.begun + 1}
			if err := e.lanes.enterLong(ctx, p); err != nil {
				return sandbox.Result{}, err
			}
		default:
			faults = append(faults, err)
		}
	}
	return sandbox.Result{}, fmt.Errorf("%w, twice: %w", sandbox.ErrInfrastructure, errors.Join(faults...))
}

// attempt runs the call once; a zygote that fails is given up.
func (e *Executor) attempt(ctx context.Context, p *patience, set PackageSet, call sandbox.Call) (sandbox.Result, error) {
	s := e.slots.take(set.Name)
	defer e.slots.give(s)
	z, err := e.zygote(s, set)
	if err != nil {
		return sandbox.Result{}, fmt.Errorf("%w: %w", errNoZygote, err)
	}
	e.forks.Add(1)
	p.begin(z)
	result, err := z.execute(ctx, call, call.Limits.OrDefault(), p)
	if err != nil && !errors.Is(err, errTurnOver) && !errors.Is(err, context.Cause(ctx)) {
		s.drop(z)
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
	for _, s := range e.slots.all() {
		for _, z := range s.zygotes {
			z.stop()
		}
	}
	e.spawner.close()
	return e.removeScratch()
}
