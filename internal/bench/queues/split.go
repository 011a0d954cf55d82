package main

import (
	"math"
	"slices"
)

// equalShares returns how many shards each queue gets if all get as many.
func equalShares(c scenario) []int {
	out := make([]int, len(c.queues))
	for i := range c.shards {
		out[i*len(c.queues)/len(c.shards)]++
	}
	return out
}

// sharesBySpeed returns how many shards each queue gets if each shard goes where it would end first, had all shards the
// same length.
func sharesBySpeed(c scenario) []int {
	out := make([]int, len(c.queues))
	for range c.shards {
		best := 0
		for q := range c.queues {
			if ends(c, out, q) < ends(c, out, best) {
				best = q
			}
		}
		out[best]++
	}
	return out
}

// ends is when one more shard of usual length would end on a queue.
func ends(c scenario, shares []int, q int) float64 {
	w := c.queues[q]
	return float64((shares[q]+w.room)/w.room) / w.speed
}

// part is a queue's part of a static split.
type part struct {
	waiting []int // shards, in order
	running []int // shards
}

// split returns the makespan of a static split into shares of consecutive shards. The committed segments of a killed
// worker's shards are kept, and the workers that are left take these shards over at once, each as many: both favour the
// split. A worker that comes back gets none.
func split(c scenario, shares []int) float64 {
	parts := make([]part, len(c.queues))
	left := make([]float64, len(c.shards))
	shard := 0
	for q, n := range shares {
		for range n {
			parts[q].waiting, left[shard] = append(parts[q].waiting, shard), float64(c.shards[shard])
			shard++
		}
	}
	dead := make([]bool, len(c.queues))
	for now := 0.0; ; {
		next, lost := math.Inf(1), -1
		for q := range parts {
			w := c.queues[q]
			for len(parts[q].running) < w.room && len(parts[q].waiting) > 0 {
				parts[q].running = append(parts[q].running, parts[q].waiting[0])
				parts[q].waiting = parts[q].waiting[1:]
			}
			for _, s := range parts[q].running {
				next = min(next, now+left[s]/w.speed)
			}
		}
		if math.IsInf(next, 1) {
			return now
		}
		for q, w := range c.queues {
			if !dead[q] && w.lost <= next {
				next, lost = w.lost, q
			}
		}
		for q := range parts {
			for _, s := range parts[q].running {
				left[s] -= (next - now) * c.queues[q].speed
			}
			parts[q].running = slices.DeleteFunc(parts[q].running, func(s int) bool { return left[s] < 1e-6 })
		}
		now = next
		if lost >= 0 {
			dead[lost] = true
			takeOver(c, parts, left, dead, lost)
		}
	}
}

// takeOver gives the shards of a killed worker to those that live and have the fewest.
func takeOver(c scenario, parts []part, left []float64, dead []bool, lost int) {
	size := float64(c.queues[lost].segment)
	for _, s := range parts[lost].running { // what was generated since the last commit is lost
		total := float64(c.shards[s])
		left[s] = total - math.Floor((total-left[s])/size)*size
	}
	orphans := slices.Concat(parts[lost].running, parts[lost].waiting)
	parts[lost] = part{}
	for _, s := range orphans {
		best := -1
		for q := range parts {
			if open := len(parts[q].running) + len(parts[q].waiting); !dead[q] &&
				(best < 0 || open < len(parts[best].running)+len(parts[best].waiting)) {
				best = q
			}
		}
		parts[best].waiting = append(parts[best].waiting, s)
	}
}

// bound is a makespan that no assignment can beat.
func bound(c scenario) float64 {
	work, longest, fastest := 0.0, 0.0, 0.0
	for _, n := range c.shards {
		work += float64(n)
		longest = max(longest, float64(n))
	}
	changes := []float64{math.Inf(1)}
	for _, w := range c.queues {
		fastest = max(fastest, w.speed)
		changes = append(changes, w.lost, w.back)
	}
	slices.Sort(changes)
	now := 0.0
	for _, until := range changes {
		rate := 0.0
		for _, w := range c.queues {
			if w.there(now) {
				rate += w.speed * float64(w.room)
			}
		}
		if end := now + work/rate; end <= until {
			now = end
			break
		}
		work -= rate * (until - now)
		now = until
	}
	return max(now, longest/fastest)
}
