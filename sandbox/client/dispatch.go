package client

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// dispatch gives pending calls to nodes that have room. The caller holds the lock.
func (c *Client) dispatch() {
	next := 0
	for ; next < len(c.pending); next++ {
		f := c.pending[next]
		if f.over {
			continue
		}
		n := c.choose(nil)
		if n == nil {
			break
		}
		n.take(f)
	}
	clear(c.pending[:next])
	c.pending = c.pending[next:]
}

// choose returns the less loaded of two random nodes that have room, except other. Choosing among two keeps many
// clients from choosing the same node. It returns nil if no node has room.
func (c *Client) choose(other *node) *node {
	var free []*node
	for _, n := range c.nodes {
		if n != other && n.takes() && len(n.calls) < c.o.Window {
			free = append(free, n)
		}
	}
	if len(free) == 0 {
		return nil
	}
	a := free[rand.IntN(len(free))]
	b := free[rand.IntN(len(free))]
	if len(free) == 2 {
		a, b = free[0], free[1]
	}
	if b.load() < a.load() {
		return b
	}
	return a
}

// watch hedges slow calls, and gives up pending calls if no node can be reached for too long.
func (c *Client) watch() {
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-c.life.Done():
			return
		case now := <-every.C:
			c.mu.Lock()
			c.hedge(now)
			if len(c.pending) > 0 && !c.noneReady.IsZero() {
				c.failExpired(now)
			}
			c.mu.Unlock()
		}
	}
}

// failExpired fails pending calls that have waited too long for a node, or that no node will accept.
func (c *Client) failExpired(now time.Time) {
	vain := c.refusedByAll()
	if !vain && now.Sub(c.noneReady) < c.o.Patience {
		return
	}
	reason := fmt.Errorf("%w: %w", sandbox.ErrInfrastructure, c.reasons())
	c.pending = slices.DeleteFunc(c.pending, func(f *outstanding) bool {
		if !vain && now.Sub(f.pendingSince) < c.o.Patience {
			return false
		}
		c.settle(f, sandbox.Result{}, reason)
		return true
	})
}

// refusedByAll reports whether trying again is useless for every node.
func (c *Client) refusedByAll() bool {
	for _, n := range c.nodes {
		if !n.refused && !n.weak() {
			return false
		}
	}
	return true
}

// reasons says why no node is ready.
func (c *Client) reasons() error {
	var all []error
	for _, n := range c.nodes {
		switch {
		case n.draining:
			all = append(all, fmt.Errorf("sandbox service at %s is shutting down", n.address))
		case n.weak():
			all = append(all, fmt.Errorf("sandbox service at %s isolates calls as %s, and %s was found at the start",
				n.address, n.tier, c.least))
		case n.fault != nil:
			all = append(all, fmt.Errorf("sandbox service at %s: %w", n.address, n.fault))
		default:
			all = append(all, fmt.Errorf("sandbox service at %s has not answered yet", n.address))
		}
	}
	return errors.Join(all...)
}

// updateReady records whether any node accepts calls, and notifies those that wait for one.
func (c *Client) updateReady() {
	some := false
	for _, n := range c.nodes {
		some = some || n.takes()
	}
	switch {
	case some:
		c.noneReady = time.Time{}
	case c.noneReady.IsZero():
		c.noneReady = time.Now()
	}
	close(c.known)
	c.known = make(chan struct{})
}
