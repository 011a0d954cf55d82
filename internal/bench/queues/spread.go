package main

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ropewalk/ropewalk/workflows/queues"
)

// silence is how long a worker that was killed counts as alive, in seconds: the heartbeat timeout of a run.
const silence = 10

// outcome is what a spread rollout took.
type outcome struct {
	Makespan float64 `json:"makespan_seconds"`
	Again    int     `json:"begun_again"`  // attempts beyond one for each shard
	Repeated float64 `json:"tokens_again"` // tokens that were generated more than once, of all
	most     int     // tokens that one attempt lost, at most
}

// attempt is a running attempt at a shard.
type attempt struct {
	number, queue int // number 0: none
	began         float64
	ends          float64 // when the shard ends, or the workflow notices that it will not
	vanishes      bool
}

// rollout is a simulated rollout whose shards are spread.
type rollout struct {
	scenario
	assigned *queues.Assignment
	now      float64
	running  []attempt // by shard
	done     []int     // committed tokens of each shard
	left     int       // shards that have not ended
	asked    []float64 // by queue: when it answers what it has room for; +Inf = it is not asked
	look     float64   // when the running shards are observed next
	repeated int
	outcome
}

// spreadOut simulates a case as a run with rollout.queues carries it out.
func spreadOut(c scenario) (outcome, error) {
	names := make([]string, len(c.queues))
	for i := range names {
		names[i] = fmt.Sprint("rollout.", i)
	}
	assigned, err := queues.New(names, len(c.shards), 4*usualShard)
	if err != nil {
		return outcome{}, err
	}
	r := &rollout{scenario: c, assigned: assigned, running: make([]attempt, len(c.shards)),
		done: make([]int, len(c.shards)), left: len(c.shards), asked: make([]float64, len(c.queues)),
		look: queues.ObserveAfter(0).Seconds()}
	if err := r.begin(); err != nil {
		return outcome{}, err
	}
	for r.left > 0 {
		if err := r.step(); err != nil {
			return outcome{}, err
		}
	}
	total := 0
	for _, n := range c.shards {
		total += n
	}
	r.Makespan, r.Repeated = r.now, float64(r.repeated)/float64(total)
	return r.outcome, nil
}

// begin has all queues answer, and assigns the first shards.
func (r *rollout) begin() error {
	for i := range r.shards {
		if err := r.follow(r.assigned.Submit(0, i)); err != nil {
			return err
		}
	}
	for q := range r.queues {
		if err := r.join(q); err != nil {
			return err
		}
	}
	return r.follow(r.assigned.Begin(0))
}

// join has a queue's worker answer.
func (r *rollout) join(q int) error {
	r.asked[q] = math.Inf(1)
	return r.follow(r.assigned.Joins(r.now, q, queues.Room{Shards: r.queues[q].room}))
}

// step goes on to the next moment at which something happens.
func (r *rollout) step() error {
	first, at := -1, math.Inf(1)
	for i, a := range r.running {
		if a.number > 0 && a.ends < at {
			first, at = i, a.ends
		}
	}
	queue := -1
	for q, answers := range r.asked {
		if answers < at {
			queue, at = q, answers
		}
	}
	if math.IsInf(at, 1) {
		return errors.New("no worker is left")
	}
	if r.look < at {
		return r.observe()
	}
	r.now = at
	if queue >= 0 {
		return r.join(queue)
	}
	return r.ended(first)
}

// observe notes how fast the running shards go on, as their last heartbeats say.
func (r *rollout) observe() error {
	r.now = r.look
	r.look += queues.ObserveAfter(time.Duration(r.now * float64(time.Second))).Seconds()
	if r.assigned.Up() < 2 {
		return nil
	}
	perToken := make([]float64, len(r.queues))
	for _, a := range r.running {
		if a.number > 0 && a.began < r.now && r.queues[a.queue].there(a.began) {
			perToken[a.queue] = 1 / r.queues[a.queue].speed
		}
	}
	return r.follow(r.assigned.Observe(r.now, perToken))
}

// ended takes note of the end of an attempt.
func (r *rollout) ended(shard int) error {
	a := r.running[shard]
	r.running[shard] = attempt{}
	if !a.vanishes {
		r.left--
		return r.follow(r.assigned.Ended(r.now, shard, a.number, int64(r.shards[shard]-r.done[shard])))
	}
	r.stop(shard, a)
	err := r.follow(r.assigned.Vanished(r.now, shard))
	if err == nil && !r.assigned.IsUp(a.queue) { // it is asked again, and answers once it has a worker
		r.asked[a.queue] = r.now
		if !r.queues[a.queue].there(r.now) {
			r.asked[a.queue] = r.queues[a.queue].back
		}
	}
	return err
}

// stop keeps what an attempt has committed until now, or until its worker was killed.
func (r *rollout) stop(shard int, a attempt) {
	w := r.queues[a.queue]
	until := r.now
	if a.began < w.lost {
		until = min(until, w.lost)
	}
	if until <= a.began || !w.there(a.began) { // no worker has taken it
		return
	}
	generated := int((until - a.began) * w.speed)
	kept := generated / w.segment * w.segment
	r.done[shard] += kept
	r.repeated += generated - kept
	r.most = max(r.most, generated-kept)
}

// follow carries out orders.
func (r *rollout) follow(orders []queues.Order, err error) error {
	for _, o := range orders {
		if o.GiveUp {
			a := r.running[o.Shard]
			r.running[o.Shard] = attempt{}
			r.stop(o.Shard, a)
			continue
		}
		if o.Attempt > 1 {
			r.Again++
		}
		r.running[o.Shard] = r.attempt(o)
	}
	return err
}

// attempt is an attempt that begins now.
func (r *rollout) attempt(o queues.Order) attempt {
	w := r.queues[o.Queue]
	a := attempt{number: o.Attempt, queue: o.Queue, began: r.now,
		ends: r.now + float64(r.shards[o.Shard]-r.done[o.Shard])/w.speed}
	switch {
	case !w.there(r.now) && w.back < r.now+queues.TakeWithin.Seconds(): // the next worker takes it
		a.began += w.back - r.now
		a.ends += w.back - r.now
	case !w.there(r.now):
		a.ends, a.vanishes = r.now+queues.TakeWithin.Seconds(), true
	case r.now < w.lost && w.lost < a.ends:
		a.ends, a.vanishes = w.lost+silence, true
	}
	return a
}
