package enginepool

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
)

// Pool holds a worker's engines: the CPU engine, which all runs share, and PyTorch engines, one for each run that
// trains here, as far as the devices suffice. Each PyTorch engine takes as many devices as its recipe asks for; a
// worker without devices has one engine. An engine stays open after a stage of its run has ended, because the next
// stage needs the models that are resident in it. The pool closes an idle engine when another run needs its devices or
// when it has been idle for idleLimit.
type Pool struct {
	record   *commit.Writer
	scratch  string
	trainer  *Trainer // the CPU engine that trains
	sampler  *Sampler // the CPU engine that generates, or another sampler
	torch    Torch    // nil: this worker runs no models in PyTorch
	score    policy.Score
	observer Observer

	mu      sync.Mutex
	slots   []*slot
	remote  map[string]*served // samplers of inference servers, by the servers' settings
	served  int                // devices used by ranks of other hosts' engines
	changed chan struct{}      // closed, and then replaced, when devices may have become free
	closed  bool
}

// Options are what a pool works with. The caller that opened Trainer and Sampler closes them, after the pool.
type Options struct {
	Record   *commit.Writer
	Trainer  policy.Trainer // trains for runs whose engine.kind is cpu
	Sampler  policy.Sampler // generates for them
	Torch    Torch          // nil: no run with engine.kind torch can work here
	Scratch  string         // folder for checkpoints that are loaded or saved
	Score    policy.Score   // the forward pass that inference servers are compared with; nil: no recipe can name any
	Observer Observer       // is told of the engines' work; nil: no one is
}

// Observer is told what engines do. Its methods are called concurrently and must not block.
type Observer interface {
	// Works reports one use of an engine: its device, whether it was to sample or to train, and how long it took.
	Works(device, what string, took time.Duration)
	// Loaded reports that an engine on a device has loaded a checkpoint.
	Loaded(device string)
}

// New makes a pool.
func New(o Options) *Pool {
	p := &Pool{record: o.Record, scratch: o.Scratch, torch: o.Torch, score: o.Score, observer: o.Observer,
		changed: make(chan struct{}),
		remote:  map[string]*served{}}
	p.trainer = &Trainer{Resident: p.resident(o.Trainer), trainer: o.Trainer}
	p.sampler = &Sampler{Resident: p.resident(o.Sampler), sampler: o.Sampler}
	p.sampler.stream = &stream{s: p.sampler}
	return p
}

// CPU returns the engines of runs whose engine.kind is cpu. They need no lease.
func (p *Pool) CPU() (*Trainer, *Sampler) { return p.trainer, p.sampler }

// Release ends a lease. cancelled says that the work was cancelled: its engine then gives its devices back at once.
type Release func(cancelled bool)

// ErrElsewhere says that a run's engine is no longer here and that there is no room for it.
var ErrElsewhere = errors.New("the run's engine is no longer on this host, and others have its devices")

// Trainer leases the engine that trains for a run. It waits for devices that this worker's other engines use. If
// elsewhere is set, so that another host could do the work, it fails with ErrElsewhere instead of waiting. A recipe
// that this worker cannot serve is a badinput.Error.
func (p *Pool) Trainer(ctx context.Context, run string, r *recipes.Recipe, elsewhere bool) (*Trainer, Release, error) {
	if !r.Engine.Declaration().Leased {
		return p.trainer, func(bool) {}, nil
	}
	at, release, err := p.take(ctx, run, r, elsewhere)
	if err != nil {
		return nil, nil, err
	}
	return &Trainer{Resident: at.resident, trainer: at.engine}, release, nil
}

// Sampler leases the engine that generates for a run, as Trainer leases the one that trains. A PyTorch engine does
// both: the next rollout samples from the weights that an update leaves resident. A sampler that lacks a capability
// which the recipe needs is refused with policy.ErrIncapable. A recipe with servers gets their sampler, which its runs
// share.
func (p *Pool) Sampler(ctx context.Context, run string, r *recipes.Recipe, elsewhere bool) (*Sampler, Release, error) {
	if len(r.Engine.Servers) > 0 {
		s, err := p.servers(ctx, r)
		return s, func(bool) {}, err
	}
	if !r.Engine.Declaration().Leased {
		if err := p.sampler.check(r); err != nil {
			return nil, nil, err
		}
		return p.sampler, func(bool) {}, nil
	}
	at, release, err := p.take(ctx, run, r, elsewhere)
	if err != nil {
		return nil, nil, err
	}
	s := &Sampler{Resident: at.resident, sampler: at.engine}
	if err := s.check(r); err != nil {
		release(false)
		return nil, nil, err
	}
	return s, release, nil
}

// Close ends all engines. Engines that are still in use end when their users leave.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.wake()
	for h := p.oldest(anySlot); h != nil; h = p.oldest(anySlot) {
		p.shut(h)
	}
	p.mu.Unlock()
	return p.closeServers()
}

func anySlot(*slot) bool { return true }
