package client

import (
	"slices"
	"time"
)

const (
	paceSamples = 1024                  // answers that the 99th percentile is taken of
	paceLeast   = 64                    // of them, before it says anything
	paceUnknown = 10 * time.Second      // the delay until then
	hedgeLeast  = 50 * time.Millisecond // below, a second sending costs more than it wins
)

// pace knows how long answers take, and how many calls may be sent twice. A share of what has landed
// is earned, so that a service that is slow as a whole is not asked for everything twice
// (Dean and Barroso, The Tail at Scale, 2013).
type pace struct {
	seen   []time.Duration // a ring
	at     int
	delay  time.Duration // 99th percentile; renewed every so often
	stale  int           // answers since
	budget float64
}

// landed notes an answer.
func (p *pace) landed(took time.Duration, share float64) {
	if len(p.seen) < paceSamples {
		p.seen = append(p.seen, took)
	} else {
		p.seen[p.at] = took
		p.at = (p.at + 1) % paceSamples
	}
	p.stale++
	p.budget = min(p.budget+max(share, 0), 64)
}

// patience is how long an answer may take before its call is hedged.
func (p *pace) patience() time.Duration {
	if len(p.seen) < paceLeast {
		return paceUnknown
	}
	if p.delay == 0 || p.stale >= paceSamples/4 {
		sorted := slices.Clone(p.seen)
		slices.Sort(sorted)
		p.delay, p.stale = max(sorted[len(sorted)*99/100], hedgeLeast), 0
	}
	return p.delay
}

// hedge sends stragglers to a second node that has a place free. The caller holds the lock.
func (c *Client) hedge(now time.Time) {
	if len(c.nodes) < 2 || c.pace.budget < 1 {
		return
	}
	late := c.pace.patience()
	for _, n := range c.nodes {
		for _, f := range n.flights {
			if c.pace.budget < 1 {
				return
			}
			if f.hedged || now.Sub(f.sent) < late {
				continue
			}
			second := c.choose(n)
			if second == nil || len(second.flights) >= second.workers {
				break // nobody is idle, so nobody would be faster
			}
			f.hedged = true
			c.pace.budget--
			second.take(f)
		}
	}
}
