package client

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// batch is what one Do waits for. The client's lock guards it until it has landed.
type batch struct {
	results []sandbox.Result
	broken  sandbox.CallErrors
	faults  bool // one is broken
	left    int
	landed  chan struct{}
}

// seat is a place in a batch that waits for a flight.
type seat struct {
	batch *batch
	index int
}

// flight is one call on its way, for all that wait for its key. The client's lock guards it.
type flight struct {
	key    string
	task   *rpc.Task
	seats  []seat
	tries  int       // sendings that ended in breakage
	on     []*node   // that have it
	sent   time.Time // when it was last given to a node
	pended time.Time // since when no node has had it
	hedged bool
	over   bool // it has landed, or nobody waits
}

// same reports whether two tasks of one key are one call.
func (f *flight) same(task *rpc.Task) bool { return proto.Equal(f.task.GetCall(), task.GetCall()) }

// land hands out what became of a flight, once. The caller holds the lock.
func (c *Client) land(f *flight, result sandbox.Result, err error) {
	if f.over {
		return
	}
	c.finish(f)
	for _, at := range f.seats {
		at.fill(result, err)
	}
}

// finish takes a flight out of everything.
func (c *Client) finish(f *flight) {
	f.over = true
	delete(c.flying, f.key)
	c.unhook(f)
}

// fill hands out an outcome.
func (s seat) fill(result sandbox.Result, err error) {
	b := s.batch
	b.results[s.index] = result
	if err != nil {
		b.broken[s.index], b.faults = fmt.Errorf("call %d: %w", s.index, err), true
	}
	if b.left--; b.left == 0 {
		close(b.landed)
	}
}

// unhook takes a flight off the nodes that still have it, and tells them.
func (c *Client) unhook(f *flight) {
	for _, n := range f.on {
		delete(n.flights, f.key)
		n.cancelled = append(n.cancelled, f.key)
		n.rouse()
	}
	f.on = nil
}

// off takes a flight off one node.
func (f *flight) off(n *node) {
	f.on = slices.DeleteFunc(f.on, func(other *node) bool { return other == n })
}

// failed decides what follows a sending that ended without a verdict. The caller holds the lock.
func (c *Client) failed(f *flight, err error) {
	if f.over || len(f.on) > 0 { // its other sending may still bring the verdict
		return
	}
	p := c.o.Preset
	switch {
	case errors.Is(err, rpc.ErrDraining):
		c.pend(f)
	case errors.Is(err, sandbox.ErrBadCall),
		errors.Is(err, sandbox.ErrQueueTimeout) && !p.Resend,
		f.tries >= p.Retries:
		c.land(f, sandbox.Result{}, c.after(f, err))
	case errors.Is(err, errNodeLost):
		f.tries++
		c.pend(f) // it goes when a node is ready: that is wait enough
	default:
		f.tries++
		wait := p.Backoff << min(f.tries-1, 16)
		time.AfterFunc(wait, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.pend(f)
			c.dispatch()
		})
	}
}

// after says how often a call was tried.
func (c *Client) after(f *flight, err error) error {
	if f.tries == 0 {
		return err
	}
	return fmt.Errorf("%w (sent %d times)", err, f.tries+1)
}

// pend puts a flight among those that no node has.
func (c *Client) pend(f *flight) {
	switch {
	case f.over:
	case c.closed:
		c.land(f, sandbox.Result{}, errClosed)
	default:
		f.pended = time.Now()
		c.pending = append(c.pending, f)
	}
}
