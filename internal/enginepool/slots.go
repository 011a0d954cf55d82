package enginepool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/engines"
	"github.com/ropewalk/ropewalk/recipes"
)

// idleLimit is how long an unused engine keeps its devices, including those of other hosts. It is shorter than the
// time that others wait for devices (defaultWait).
const idleLimit = 5 * time.Minute

// engineFields are the recipe fields that an engine is opened with.
type engineFields struct {
	engine recipes.Engine
	model  recipes.Policy
	seed   uint64 // for a new adapter's random numbers
}

func fieldsOf(r *recipes.Recipe) engineFields {
	s := engineFields{engine: r.Engine, model: r.Policy}
	if r.Engine.LoRA != nil {
		s.seed = r.Seed
	}
	return s
}

func (s engineFields) equal(other engineFields) bool { return reflect.DeepEqual(s, other) }

// slot is one PyTorch engine, one at a Tinker server, or the reserved slot of an engine that is opening or closing.
type slot struct {
	run      string
	fields   engineFields
	devices  int           // 0 for an engine at a server
	engine   policy.Engine // nil while the engine opens or closes
	resident *Resident     // of engine
	users    int
	left     time.Time // when the last user left
	expiry   *time.Timer
}

func (at *slot) idle() bool { return at.engine != nil && at.users == 0 }

// take returns the slot of a run's engine, with the caller counted as its user.
func (p *Pool) take(ctx context.Context, run string, r *recipes.Recipe, elsewhere bool) (*slot, Release, error) {
	at := &slot{run: run, fields: fieldsOf(r)}
	if r.Engine.Declaration().Devices {
		if p.torch == nil {
			return nil, nil, badinput.Errorf("engine.kind: torch: this worker has no PyTorch engine")
		}
		at.devices = p.cost(r.Engine.Devices)
	}
	var found *slot
	err := p.await(ctx, func() (done bool, changed <-chan struct{}, err error) {
		found, changed, err = p.find(at, elsewhere)
		return found != nil, changed, err
	})
	if err == nil && found == at { // the slot is reserved, so only this caller opens the engine
		err = p.open(ctx, at, r)
	}
	if err != nil {
		return nil, nil, err
	}
	return found, func(cancelled bool) { p.leave(found, cancelled) }, nil
}

// await calls try until it is done: again at once if it has closed an engine, and else when devices may have become
// free.
func (p *Pool) await(ctx context.Context, try func() (done bool, changed <-chan struct{}, err error)) error {
	for {
		done, changed, err := try()
		if done || err != nil {
			return err
		}
		if changed == nil { // an engine was closed
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for devices of this worker's engines: %w", context.Cause(ctx))
		}
	}
}

// cost is how many devices of the pool an engine takes. On a worker without devices, one engine takes all of it.
func (p *Pool) cost(devices int) int {
	if p.torch.Devices() == 0 {
		return 1
	}
	return max(1, devices)
}

func (p *Pool) free() int {
	if p.torch == nil {
		return 0
	}
	n := max(1, p.torch.Devices()) - p.served
	for _, at := range p.slots {
		n -= at.devices
	}
	return n
}

// find returns the run's engine, or an idle engine with equal settings, with this user counted. If there is none but
// enough devices are free, it reserves the slot of at and returns at. Otherwise it closes an idle engine and returns
// neither value, or it returns a channel to wait on.
func (p *Pool) find(at *slot, elsewhere bool) (*slot, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, errors.New("the worker ends")
	}
	same := func(h *slot) bool { return h.run == at.run && h.fields.equal(at.fields) }
	if i := slices.IndexFunc(p.slots, same); i >= 0 {
		if h := p.slots[i]; h.engine != nil {
			p.enter(h)
			return h, nil, nil
		}
		return nil, p.changed, nil
	}
	// A request for more devices than there are fails in the lease.
	if at.devices == 0 || p.free() >= at.devices || !slices.ContainsFunc(p.slots, usesDevices) && p.served == 0 {
		at.users = 1
		p.slots = append(p.slots, at)
		return at, nil, nil
	}
	// No new engine needs to start.
	if h := p.oldest(func(h *slot) bool { return h.fields.equal(at.fields) }); h != nil {
		h.run = at.run
		p.enter(h)
		return h, nil, nil
	}
	if h := p.oldest(usesDevices); h != nil {
		p.shut(h)
		return nil, nil, nil
	}
	if elsewhere {
		return nil, nil, ErrElsewhere
	}
	return nil, p.changed, nil
}

// usesDevices reports whether an engine runs here, and not at a server.
func usesDevices(at *slot) bool { return at.devices > 0 }

func (p *Pool) enter(at *slot) {
	at.users++
	if at.expiry != nil {
		at.expiry.Stop()
	}
}

// oldest is the suitable engine that has been idle longest.
func (p *Pool) oldest(suits func(*slot) bool) (out *slot) {
	for _, h := range p.slots {
		if h.idle() && suits(h) && (out == nil || h.left.Before(out.left)) {
			out = h
		}
	}
	return out
}

// open starts the engine of a reserved slot.
func (p *Pool) open(ctx context.Context, at *slot, r *recipes.Recipe) error {
	engine, err := Openings[r.Engine.Kind](p, ctx, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.wake()
	if err != nil {
		p.drop(at)
		return err
	}
	at.engine, at.resident = engine, p.resident(engine)
	return nil
}

// Openings start the engines of the kinds that are leased.
var Openings = map[string]func(*Pool, context.Context, *recipes.Recipe) (policy.Engine, error){
	engines.Torch:  (*Pool).openTorch,
	engines.Tinker: (*Pool).openRemote,
}

func (p *Pool) openTorch(ctx context.Context, r *recipes.Recipe) (policy.Engine, error) {
	engine, err := p.torch.Open(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("open the PyTorch engine: %w", err)
	}
	return engine, nil
}

// leave ends a use. An engine whose work was cancelled gives its devices back at once.
func (p *Pool) leave(at *slot, cancelled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.users--
	at.left = time.Now()
	if at.users == 0 && (cancelled || p.closed) {
		p.shut(at)
	} else if at.users == 0 {
		at.expiry = time.AfterFunc(idleLimit, func() { p.expire(at) })
	}
	p.wake()
}

// expire closes an engine that has been idle for idleLimit.
func (p *Pool) expire(at *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.idle() && time.Since(at.left) >= idleLimit {
		p.shut(at)
	}
}

// shut closes an idle engine and frees its slot when the engine has ended. The caller holds the lock, and shut
// releases it while the engine closes.
func (p *Pool) shut(at *slot) {
	engine := at.engine
	at.engine = nil
	if at.expiry != nil {
		at.expiry.Stop()
	}
	p.mu.Unlock()
	err := engine.Close()
	p.mu.Lock()
	if err != nil {
		slog.Warn("close an engine", "run", at.run, "error", err)
	}
	p.drop(at)
	p.wake()
}

func (p *Pool) drop(at *slot) {
	p.slots = slices.DeleteFunc(p.slots, func(h *slot) bool { return h == at })
}

// wake makes all waiting callers try again. The caller holds the lock.
func (p *Pool) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}
