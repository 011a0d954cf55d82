package main

import (
	"math"
	"math/rand/v2"
)

// worker is the one worker of a queue. Times are in seconds from the beginning.
type worker struct {
	speed   float64 // tokens a second of each shard that it runs
	room    int     // shards that it runs at once
	lost    float64 // when it is killed; +Inf = never
	back    float64 // when the queue has a worker again; +Inf = never
	segment int     // tokens of a shard between two commits
}

// there reports whether the worker lives.
func (w worker) there(now float64) bool { return now < w.lost || now >= w.back }

// scenario is a case.
type scenario struct {
	name   string
	queues []worker
	shards []int // tokens
}

// The shards and workers of the cases. A shard of usual length takes 100 s at the usual speed.
const (
	usualSpeed  = 200.0
	usualShard  = 20_000
	usualRoom   = 4
	segment     = 2_000 // tokens between two commits of a shard
	shardsSigma = 0.3   // of the logarithm of a shard's length
)

// of makes a case of workers with these parts of the usual speed.
func of(name string, shards int, speeds ...float64) scenario {
	c := scenario{name: name}
	for _, s := range speeds {
		c.queues = append(c.queues, worker{speed: s * usualSpeed, room: usualRoom, lost: math.Inf(1),
			back: math.Inf(1), segment: segment})
	}
	rng := rand.New(rand.NewPCG(19, uint64(shards)))
	for range shards {
		c.shards = append(c.shards, int(usualShard*math.Exp(shardsSigma*rng.NormFloat64())))
	}
	return c
}

// loses is the case with a worker that is killed, and comes back at a later time.
func (c scenario) loses(queue int, at, back float64) scenario {
	c.queues[queue].lost, c.queues[queue].back = at, back
	return c
}

// cases are those of the table.
func cases() []scenario {
	never := math.Inf(1)
	return []scenario{
		of("equal", 64, 1, 1, 1, 1),
		of("one at half", 64, 1, 1, 1, 0.5),
		of("one at a tenth", 64, 1, 1, 1, 0.1),
		of("mixed", 64, 1, 0.75, 0.5, 0.25),
		of("one lost", 64, 1, 1, 1, 1).loses(1, 150, never),
		of("one lost late", 64, 1, 1, 1, 1).loses(1, 380, never),
		of("one lost and back", 64, 1, 1, 1, 1).loses(1, 150, 300),
		of("mixed, one lost", 64, 1, 0.75, 0.5, 0.25).loses(1, 150, never),
		of("mixed, fastest lost", 64, 1, 0.75, 0.5, 0.25).loses(0, 150, never),
		of("mixed, one lost and back", 64, 1, 0.75, 0.5, 0.25).loses(1, 150, 300),
		of("few, mixed, one lost", 16, 1, 0.75, 0.5, 0.25).loses(1, 50, never),
		of("many, mixed, one lost", 512, 1, 0.75, 0.5, 0.25).loses(1, 1000, never),
		of("eight, one slow, one lost", 128, 1, 1, 1, 1, 1, 1, 1, 0.1).loses(2, 150, never),
	}
}
