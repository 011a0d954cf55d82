package client

import (
	"slices"
	"time"
)

const (
	paceSamples = 1024                  // answers from which the 99th percentile is computed
	paceLeast   = 64                    // answers needed before it is used
	paceUnknown = 10 * time.Second      // the delay before that
	hedgeLeast  = 50 * time.Millisecond // a second attempt after less time costs more than it gains
)

// latency tracks how long answers take, and how many calls may be sent twice. Each answer earns a share of a second
// attempt, so that a service that is slow as a whole does not get every call twice (Dean and Barroso, The Tail at
// Scale, 2013).
type latency struct {
	seen   []time.Duration // a ring buffer
	at     int
	delay  time.Duration // 99th percentile; recomputed at intervals
	stale  int           // answers since then
	budget float64
}

// record adds an answer.
func (l *latency) record(took time.Duration, share float64) {
	if len(l.seen) < paceSamples {
		l.seen = append(l.seen, took)
	} else {
		l.seen[l.at] = took
		l.at = (l.at + 1) % paceSamples
	}
	l.stale++
	l.budget = min(l.budget+max(share, 0), 64)
}

// hedgeDelay returns how long an answer may take before its call is hedged.
func (l *latency) hedgeDelay() time.Duration {
	if len(l.seen) < paceLeast {
		return paceUnknown
	}
	if l.delay == 0 || l.stale >= paceSamples/4 {
		sorted := slices.Clone(l.seen)
		slices.Sort(sorted)
		l.delay, l.stale = max(sorted[len(sorted)*99/100], hedgeLeast), 0
	}
	return l.delay
}

// hedge sends slow calls to a second node that has an idle worker. The caller holds the lock.
func (c *Client) hedge(now time.Time) {
	if len(c.nodes) < 2 || c.latency.budget < 1 {
		return
	}
	late := c.latency.hedgeDelay()
	for _, n := range c.nodes {
		for _, f := range n.calls {
			if c.latency.budget < 1 {
				return
			}
			if f.hedged || now.Sub(f.sent) < late {
				continue
			}
			second := c.choose(n)
			if second == nil || len(second.calls) >= second.workers {
				break // no node is idle, so none would be faster
			}
			f.hedged = true
			c.latency.budget--
			second.take(f)
		}
	}
}
