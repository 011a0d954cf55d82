// Package queues decides which of several task queues takes which shard of a rollout, and when. It is pure: a workflow
// and a simulation carry out the same decisions.
//
// Glossary. A queue is *up* while it has a worker, as far as is known; its worker has *room* for some shards. A shard
// *runs* on a queue from the moment it is assigned. An *order* is what an assignment asks for.
package queues

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/rl/scheduler"
)

// TakeWithin is how long a queue may take to start a shard that was assigned to it. A worker that lives and has room
// takes it at once.
const TakeWithin = 10 * time.Second

// AnswerWithin is how long the first queue that has a worker waits for the answers of the others.
const AnswerWithin = time.Second

// observeFirst is when the shards that run are first observed.
const observeFirst = 10 * time.Second

// ObserveAfter is how long after a time since the beginning the shards are observed: whenever half as much time again
// has passed, so that a long rollout has few more events than a short one.
func ObserveAfter(passed time.Duration) time.Duration { return max(observeFirst, passed/2) }

// Assignment assigns the shards of a rollout to queues. It tells the core of package scheduler of the queues as
// engines, and of the shards as episodes of one turn. What has happened, and the time in seconds since the beginning,
// are all that it goes by, so that the replay of a workflow decides the same. Queues and shards are numbered from 0.
//
// Every method that returns orders expects them to be carried out before the next call.
type Assignment struct {
	core   *scheduler.Core
	tokens int               // that a shard can come to hold
	early  []scheduler.Event // shards that were submitted before
	begun  bool              // shards are assigned
	queues []shardQueue
	shards []shardPlace
}

// shardQueue is what is known about a queue.
type shardQueue struct {
	name     string
	room     Room // of the worker that answered last
	up       bool
	running  []int   // shards, in the order in which they were assigned
	done     int     // shards
	perToken float64 // seconds that a shard took for a token when this was last observed; 0 = not known
}

// shardPlace says where a shard runs.
type shardPlace struct {
	queue, attempt int   // attempt 0: it runs nowhere
	failed         []int // queues that have failed on it
}

// Room is what a queue's worker has room for.
type Room struct {
	Worker string // for people
	Shards int    // that it runs at once; at least 1
	Tokens int    // that its engine can hold; 0 = not known
}

// Order is to begin an attempt at a shard on a queue, or to give up the running one.
type Order struct {
	Shard, Queue, Attempt int
	GiveUp                bool
}

// New makes an assignment of shards that can each come to hold so many tokens. No queue is up.
func New(names []string, shards, tokens int) (*Assignment, error) {
	a := &Assignment{tokens: max(tokens, 1), shards: make([]shardPlace, shards)}
	engines := make([]scheduler.Engine, len(names))
	down := make([]scheduler.Event, len(names))
	for i, name := range names {
		a.queues = append(a.queues, shardQueue{name: name})
		engines[i] = scheduler.Engine{Capacity: a.tokens}
		down[i] = scheduler.Event{Kind: scheduler.Lost, Engine: i}
	}
	settings := scheduler.Default()
	settings.Reserve = scheduler.Worst
	var err error
	if a.core, err = scheduler.New(settings, engines); err != nil {
		return nil, err
	}
	_, err = a.tell(0, down...)
	return a, err
}

// tell tells the core what has happened.
func (a *Assignment) tell(now float64, events ...scheduler.Event) (out []Order, err error) {
	actions, err := a.core.Step(now, events...)
	if err != nil {
		return nil, err
	}
	for _, x := range actions {
		d := Order{Shard: x.Episode, Queue: x.Engine, Attempt: x.Attempt, GiveUp: x.Do == scheduler.Cancel}
		switch x.Do {
		case scheduler.Start:
			a.shards[d.Shard].queue, a.shards[d.Shard].attempt = d.Queue, d.Attempt
			a.queues[d.Queue].running = append(a.queues[d.Queue].running, d.Shard)
		case scheduler.Cancel:
			a.leaves(d.Shard)
		default:
			return nil, fmt.Errorf("the scheduler asks a queue to %s", x)
		}
		out = append(out, d)
	}
	return out, nil
}

// leaves takes a shard from its queue.
func (a *Assignment) leaves(shard int) {
	place := &a.shards[shard]
	if place.attempt == 0 {
		return
	}
	at := &a.queues[place.queue]
	at.running = slices.DeleteFunc(at.running, func(s int) bool { return s == shard })
	place.attempt = 0
}

// Submit adds a shard.
func (a *Assignment) Submit(now float64, shard int) ([]Order, error) {
	e := scheduler.Event{Kind: scheduler.Submit, Episode: shard, Spec: scheduler.Spec{Group: shard, Most: a.tokens}}
	if !a.begun {
		a.early = append(a.early, e)
		return nil, nil
	}
	return a.tell(now, e)
}

// Joins notes that a queue has a worker, with so much room. Where the room for tokens is known, the queue takes as many
// shards as have room in the worst case, and one more, so that the engine has work while the last episodes of the
// others end.
func (a *Assignment) Joins(now float64, queue int, room Room) ([]Order, error) {
	at := &a.queues[queue]
	at.room, at.up, at.perToken = room, true, 0
	rows := max(room.Shards, 1)
	e := scheduler.Engine{Capacity: rows * a.tokens, Rows: rows}
	if room.Tokens > 0 {
		e.Capacity = max(room.Tokens, a.tokens) + a.tokens
	}
	return a.tell(now, scheduler.Event{Kind: scheduler.Joined, Engine: queue, As: &e})
}

// Ended notes that an attempt at a shard, which sampled so many tokens, has finished it.
func (a *Assignment) Ended(now float64, shard, attempt int, tokens int64) ([]Order, error) {
	place := a.shards[shard]
	if place.attempt != attempt { // it had been given up
		return a.Withdraw(now, shard)
	}
	a.queues[place.queue].done++
	a.leaves(shard)
	return a.tell(now, scheduler.Event{Kind: scheduler.Ended, Episode: shard, Attempt: place.attempt,
		Tokens: int(tokens)})
}

// Begin has the shards assigned that were submitted so far, and from now on each when it is submitted.
func (a *Assignment) Begin(now float64) ([]Order, error) {
	events := a.early
	a.early, a.begun = nil, true
	return a.tell(now, events...)
}

// Withdraw notes that a shard has failed for good, or is done although the attempt had been given up.
func (a *Assignment) Withdraw(now float64, shard int) ([]Order, error) {
	a.leaves(shard)
	return a.tell(now, scheduler.Event{Kind: scheduler.Withdrawn, Episode: shard})
}

// Vanished notes that a queue has not taken a running shard, or that the worker that had taken it is silent. Other
// shards that run there may have another worker: the queue takes none until one of them has ended. When no other runs
// there, the queue is lost.
func (a *Assignment) Vanished(now float64, shard int) ([]Order, error) {
	place := a.shards[shard]
	a.leaves(shard)
	at := &a.queues[place.queue]
	if len(at.running) > 0 {
		return a.tell(now, scheduler.Event{Kind: scheduler.Evicted, Episode: shard, Attempt: place.attempt})
	}
	at.up = false
	return a.tell(now, scheduler.Event{Kind: scheduler.Lost, Engine: place.queue})
}

// Failed notes that a queue has failed on a running shard, if another queue that is up may do better.
func (a *Assignment) Failed(now float64, shard int) (_ []Order, again bool, _ error) {
	place := &a.shards[shard]
	place.failed = append(place.failed, place.queue)
	for i, q := range a.queues {
		again = again || q.up && !slices.Contains(place.failed, i)
	}
	if !again {
		return nil, false, nil
	}
	attempt := place.attempt
	a.leaves(shard)
	out, err := a.tell(now, scheduler.Event{Kind: scheduler.Failed, Episode: shard, Attempt: attempt})
	return out, true, err
}

// Observe notes how fast the shards of each queue go on: seconds for a token, 0 where nothing is known.
func (a *Assignment) Observe(now float64, perToken []float64) ([]Order, error) {
	var events []scheduler.Event
	for i := range a.queues {
		q := &a.queues[i]
		if perToken[i] <= 0 || !q.up {
			continue
		}
		q.perToken = perToken[i]
		events = append(events, scheduler.Event{Kind: scheduler.Rate, Engine: i, PerToken: q.perToken})
	}
	return a.tell(now, events...)
}

// Queue is the name of a queue.
func (a *Assignment) Queue(queue int) string { return a.queues[queue].name }

// IsUp reports whether a queue has a worker.
func (a *Assignment) IsUp(queue int) bool { return a.queues[queue].up }

// Up counts the queues that have a worker.
func (a *Assignment) Up() (n int) {
	for _, q := range a.queues {
		if q.up {
			n++
		}
	}
	return n
}

// Markdown shows the queues. The numbers of the shards begin at first.
func (a *Assignment) Markdown(first int) string {
	var b strings.Builder
	b.WriteString("| queue | worker | shards that run | done | tokens/s of a shard |\n|:--|:--|:--|--:|--:|\n")
	for _, q := range a.queues {
		worker, shards, rate := "none", "", ""
		if q.up {
			worker = q.room.Worker
		}
		for i, s := range q.running {
			if i == shownShards {
				shards += fmt.Sprintf(" and %d more", len(q.running)-i)
				break
			}
			shards += fmt.Sprintf(" %d", first+s)
		}
		if q.perToken > 0 {
			rate = fmt.Sprintf("%.0f", 1/q.perToken)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %s |\n", q.name, worker, strings.TrimSpace(shards), q.done, rate)
	}
	return b.String()
}

// shownShards bounds how many running shards of a queue the details name.
const shownShards = 16
