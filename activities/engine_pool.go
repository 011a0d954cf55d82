package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
)

// idleLimit is how long an engine that nobody uses keeps its devices, and those of other hosts: below what others wait for
// devices (leased.DefaultWait).
const idleLimit = 5 * time.Minute

// enginePool holds a worker's PyTorch engines, one for each run that trains here, as far as its devices go: each engine takes
// what its recipe asks for, and without devices there is one. An engine stays open when a stage of its run has ended, since
// the next one wants what is resident in it, until another run needs its devices or nobody has wanted it for a while.
type enginePool struct {
	maker  Torch // nil: this worker runs no models
	slotOf func(policy.Engine) *slot

	mu      sync.Mutex
	held    []*pooled
	served  int           // devices that ranks of other hosts' engines have
	changed chan struct{} // closed, and then replaced, when something may have come free
	closed  bool
}

// torchSettings are what of a recipe an engine is opened for.
type torchSettings struct {
	engine recipes.Engine
	model  recipes.Policy
	seed   uint64 // of a new adapter's random numbers
}

func settingsOf(r *recipes.Recipe) torchSettings {
	s := torchSettings{engine: r.Engine, model: r.Policy}
	if r.Engine.LoRA != nil {
		s.seed = r.Seed
	}
	return s
}

func (s torchSettings) equal(other torchSettings) bool { return reflect.DeepEqual(s, other) }

// pooled is one engine, or the place of one that opens or closes.
type pooled struct {
	run      string
	settings torchSettings
	devices  int
	slot     *slot // nil while it opens or closes
	users    int
	left     time.Time // when the last user left
	expiry   *time.Timer
}

func (p *pooled) idle() bool { return p.slot != nil && p.users == 0 }

func newEnginePool(maker Torch, slotOf func(policy.Engine) *slot) *enginePool {
	return &enginePool{maker: maker, slotOf: slotOf, changed: make(chan struct{})}
}

// errElsewhere says that a run's engine is no longer here and that there is no room for it.
var errElsewhere = errors.New("the run's engine is no longer on this host, and others have its devices")

// take gives a run's engine, which the caller gives back by the function, telling whether it was called off. It waits for
// devices that this worker's other engines use, or, where the run could as well go elsewhere, fails with errElsewhere.
func (e *enginePool) take(ctx context.Context, run string, r *recipes.Recipe, elsewhere bool) (*slot, func(calledOff bool), error) {
	if e.maker == nil {
		return nil, nil, refuse(wire.FailBadInput, "engine.kind: torch: this worker has no PyTorch engine")
	}
	p := &pooled{run: run, settings: settingsOf(r), devices: e.cost(r.Engine.Devices)}
	for {
		found, wait, err := e.find(p, elsewhere)
		if err != nil {
			return nil, nil, err
		}
		if found == p { // its place is taken; nobody else opens it
			if err := e.open(ctx, p, r); err != nil {
				return nil, nil, err
			}
		}
		if found != nil {
			return found.slot, func(calledOff bool) { e.leave(found, calledOff) }, nil
		}
		if wait == nil { // something was closed
			continue
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("wait for devices of this worker's other engines: %w", ctx.Err())
		}
	}
}

// cost is what of the room an engine of so many devices takes; without any, one engine has all of it.
func (e *enginePool) cost(devices int) int {
	if e.maker.Devices() == 0 {
		return 1
	}
	return max(1, devices)
}

func (e *enginePool) free() int {
	n := max(1, e.maker.Devices()) - e.served
	for _, p := range e.held {
		n -= p.devices
	}
	return n
}

// find gives the run's engine, with its user counted; or p itself, whose place is taken then; or closes what is in the way,
// which gives neither; or what to wait for.
func (e *enginePool) find(p *pooled, elsewhere bool) (*pooled, <-chan struct{}, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, nil, errors.New("the worker ends")
	}
	same := func(h *pooled) bool { return h.run == p.run && h.settings.equal(p.settings) }
	if i := slices.IndexFunc(e.held, same); i >= 0 {
		if h := e.held[i]; h.slot != nil {
			e.enter(h)
			return h, nil, nil
		}
		return nil, e.changed, nil
	}
	if e.free() >= p.devices || len(e.held) == 0 && e.served == 0 { // more than there are is the lease's to refuse
		p.users = 1
		e.held = append(e.held, p)
		return p, nil, nil
	}
	if h := e.oldest(func(h *pooled) bool { return h.settings.equal(p.settings) }); h != nil { // it need not start anew
		h.run = p.run
		e.enter(h)
		return h, nil, nil
	}
	if h := e.oldest(func(*pooled) bool { return true }); h != nil {
		e.shut(h)
		return nil, nil, nil
	}
	if elsewhere {
		return nil, nil, errElsewhere
	}
	return nil, e.changed, nil
}

func (e *enginePool) enter(p *pooled) {
	p.users++
	if p.expiry != nil {
		p.expiry.Stop()
	}
}

// oldest is the idle engine that has been so for longest.
func (e *enginePool) oldest(suits func(*pooled) bool) (out *pooled) {
	for _, h := range e.held {
		if h.idle() && suits(h) && (out == nil || h.left.Before(out.left)) {
			out = h
		}
	}
	return out
}

// open starts the engine of a place that was taken.
func (e *enginePool) open(ctx context.Context, p *pooled, r *recipes.Recipe) error {
	engine, err := e.maker.Open(ctx, r)
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.wake()
	if err != nil {
		e.drop(p)
		return fmt.Errorf("open the PyTorch engine: %w", err)
	}
	p.slot = e.slotOf(engine)
	return nil
}

// leave ends a use. An engine whose work was called off gives its devices back at once.
func (e *enginePool) leave(p *pooled, calledOff bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p.users--
	p.left = time.Now()
	if p.users == 0 && (calledOff || e.closed) {
		e.shut(p)
	} else if p.users == 0 {
		p.expiry = time.AfterFunc(idleLimit, func() { e.expire(p) })
	}
	e.wake()
}

// expire closes an engine that nobody has wanted for a while.
func (e *enginePool) expire(p *pooled) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.idle() && time.Since(p.left) >= idleLimit {
		e.shut(p)
	}
}

// shut closes an idle engine; its place is free when it has ended. It needs the lock, and lets it go meanwhile.
func (e *enginePool) shut(p *pooled) {
	engine := p.slot.engine
	p.slot = nil
	if p.expiry != nil {
		p.expiry.Stop()
	}
	e.mu.Unlock()
	err := engine.Close()
	e.mu.Lock()
	if err != nil {
		slog.Warn("close a PyTorch engine", "run", p.run, "error", err)
	}
	e.drop(p)
	e.wake()
}

func (e *enginePool) drop(p *pooled) {
	e.held = slices.DeleteFunc(e.held, func(h *pooled) bool { return h == p })
}

// wake has those try again who wait. It needs the lock.
func (e *enginePool) wake() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// Close ends all engines. Those that are still in use end when their users leave.
func (e *enginePool) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.wake()
	for {
		h := e.oldest(func(*pooled) bool { return true })
		if h == nil {
			return nil
		}
		e.shut(h)
	}
}
