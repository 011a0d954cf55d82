package enginepool

import (
	"context"
	"errors"

	"github.com/ropewalk/ropewalk/gpu/gang"
)

// RunsTorch reports whether this worker can have PyTorch engines.
func (p *Pool) RunsTorch() bool { return p.torch != nil }

// Serve runs ranks of another host's engine until that engine or ctx ends. gang.ErrGone and gang.ErrElsewhere say that
// there was nothing to serve. The worker must run PyTorch engines.
func (p *Pool) Serve(ctx context.Context, i gang.Invitation) error {
	return p.torch.Serve(ctx, i, p.room)
}

// room makes room for ranks of another host's engine: it closes idle engines, and waits for engines in use.
func (p *Pool) room(ctx context.Context, devices int) (release func(), err error) {
	n := p.cost(devices)
	err = p.await(ctx, func() (bool, <-chan struct{}, error) { return p.reserve(n) })
	return func() { p.unreserve(n) }, err
}

// reserve reserves n devices. If too few are free, it closes an idle engine or returns a channel to wait on.
func (p *Pool) reserve(n int) (reserved bool, wait <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false, nil, errors.New("the worker ends")
	}
	if p.free() >= n {
		p.served += n
		return true, nil, nil
	}
	if h := p.oldest(usesDevices); h != nil {
		p.shut(h)
		return false, nil, nil
	}
	return false, p.changed, nil
}

func (p *Pool) unreserve(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.served -= n
	p.wake()
}
