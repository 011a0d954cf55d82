package client

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// dispatch gives pending flights to nodes while one has room. The caller holds the lock.
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

// choose is the better of two random nodes that have room, other than one that is given: the choice
// of two keeps all clients from running to the same node. Nil if there is none.
func (c *Client) choose(other *node) *node {
	var free []*node
	for _, n := range c.nodes {
		if n != other && n.takes() && len(n.flights) < c.o.Window {
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

// watch hedges stragglers, and gives up what waits when no node can be reached for too long.
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
			if len(c.pending) > 0 && !c.alone.IsZero() {
				c.surrender(now)
			}
			c.mu.Unlock()
		}
	}
}

// surrender fails what has waited for a node too long, or in vain.
func (c *Client) surrender(now time.Time) {
	vain := c.refusedByAll()
	if !vain && now.Sub(c.alone) < c.o.Patience {
		return
	}
	reason := fmt.Errorf("%w: %w", sandbox.ErrInfrastructure, c.reasons())
	c.pending = slices.DeleteFunc(c.pending, func(f *flight) bool {
		if !vain && now.Sub(f.pended) < c.o.Patience {
			return false
		}
		c.land(f, sandbox.Result{}, reason)
		return true
	})
}

// refusedByAll reports that trying again cannot help.
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
			all = append(all, fmt.Errorf("sandbox service at %s isolates calls as %s, and %s was found at the start", n.address, n.tier, c.least))
		case n.fault != nil:
			all = append(all, fmt.Errorf("sandbox service at %s: %w", n.address, n.fault))
		default:
			all = append(all, fmt.Errorf("sandbox service at %s has not answered yet", n.address))
		}
	}
	return errors.Join(all...)
}

// survey notes whether any node takes calls, and tells those that wait for it.
func (c *Client) survey() {
	some := false
	for _, n := range c.nodes {
		some = some || n.takes()
	}
	switch {
	case some:
		c.alone = time.Time{}
	case c.alone.IsZero():
		c.alone = time.Now()
	}
	close(c.known)
	c.known = make(chan struct{})
}
