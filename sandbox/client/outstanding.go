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

// batch is what one Do waits for. The client's lock guards it until it is done.
type batch struct {
	results []sandbox.Result
	broken  sandbox.CallErrors
	faults  bool // at least one call broke
	left    int
	done    chan struct{}
}

// waiter is a place in a batch that waits for a call.
type waiter struct {
	batch *batch
	index int
}

// outstanding is one call without a result, for all waiters with its key. The client's lock guards it.
type outstanding struct {
	key          string
	task         *rpc.Task
	waiters      []waiter
	tries        int       // attempts that ended in breakage
	on           []*node   // the nodes that have it
	sent         time.Time // when a node last got it
	pendingSince time.Time // since when no node has it
	hedged       bool
	over         bool // it has a result, or none waits for it
}

// same reports whether a task with the same key has the same call.
func (f *outstanding) same(task *rpc.Task) bool { return proto.Equal(f.task.GetCall(), task.GetCall()) }

// settle gives the result of a call to its waiters, once. The caller holds the lock.
func (c *Client) settle(f *outstanding, result sandbox.Result, err error) {
	if f.over {
		return
	}
	c.finish(f)
	for _, at := range f.waiters {
		at.fill(result, err)
	}
}

// finish removes a call from the client and its nodes.
func (c *Client) finish(f *outstanding) {
	f.over = true
	delete(c.outstanding, f.key)
	c.detach(f)
}

// fill sets the waiter's result.
func (w waiter) fill(result sandbox.Result, err error) {
	b := w.batch
	b.results[w.index] = result
	if err != nil {
		b.broken[w.index], b.faults = fmt.Errorf("call %d: %w", w.index, err), true
	}
	if b.left--; b.left == 0 {
		close(b.done)
	}
}

// detach removes a call from the nodes that still have it, and cancels it there.
func (c *Client) detach(f *outstanding) {
	for _, n := range f.on {
		delete(n.calls, f.key)
		n.cancelled = append(n.cancelled, f.key)
		n.wakeSender()
	}
	f.on = nil
}

// off removes a call from one node.
func (f *outstanding) off(n *node) {
	f.on = slices.DeleteFunc(f.on, func(other *node) bool { return other == n })
}

// failed decides what to do after an attempt without a verdict. The caller holds the lock.
func (c *Client) failed(f *outstanding, err error) {
	if f.over || len(f.on) > 0 { // the other attempt may still return a verdict
		return
	}
	p := c.o.Preset
	switch {
	case errors.Is(err, rpc.ErrDraining):
		c.enqueue(f)
	case errors.Is(err, sandbox.ErrBadCall),
		errors.Is(err, sandbox.ErrQueueTimeout) && !p.Resend,
		f.tries >= p.Retries:
		c.settle(f, sandbox.Result{}, c.after(f, err))
	case errors.Is(err, errNodeLost):
		f.tries++
		c.enqueue(f) // it is sent when a node is ready, so no further wait is needed
	default:
		f.tries++
		wait := p.Backoff << min(f.tries-1, 16)
		time.AfterFunc(wait, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.enqueue(f)
			c.dispatch()
		})
	}
}

// after adds to an error how often a call was sent.
func (c *Client) after(f *outstanding, err error) error {
	if f.tries == 0 {
		return err
	}
	return fmt.Errorf("%w (sent %d times)", err, f.tries+1)
}

// enqueue adds a call to those that no node has.
func (c *Client) enqueue(f *outstanding) {
	switch {
	case f.over:
	case c.closed:
		c.settle(f, sandbox.Result{}, errClosed)
	default:
		f.pendingSince = time.Now()
		c.pending = append(c.pending, f)
	}
}
