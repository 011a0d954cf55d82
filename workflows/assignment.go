package workflows

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/rl/scheduler"
)

// assignment decides which task queue takes which shard of a rollout, and when. It tells the core of package scheduler
// of the queues as engines, and of the shards as episodes of one turn. What has happened, and the time, are all that it
// goes by, so that the replay of a workflow decides the same.
//
// A queue is up while it has a worker, as far as is known. A shard *runs* on a queue from the moment it is assigned.
type assignment struct {
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
	room     api.Room // of the worker that answered last
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

// order is what an assignment asks for: to begin an attempt at a shard on a queue, or to give up the running one.
type order struct {
	shard, queue, attempt int
	giveUp                bool
}

// newAssignment makes an assignment of shards that can each come to hold so many tokens. No queue is up.
func newAssignment(names []string, shards, tokens int) (*assignment, error) {
	a := &assignment{tokens: max(tokens, 1), shards: make([]shardPlace, shards)}
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
func (a *assignment) tell(now float64, events ...scheduler.Event) (out []order, err error) {
	actions, err := a.core.Step(now, events...)
	if err != nil {
		return nil, err
	}
	for _, x := range actions {
		d := order{shard: x.Episode, queue: x.Engine, attempt: x.Attempt, giveUp: x.Do == scheduler.Cancel}
		switch x.Do {
		case scheduler.Start:
			a.shards[d.shard].queue, a.shards[d.shard].attempt = d.queue, d.attempt
			a.queues[d.queue].running = append(a.queues[d.queue].running, d.shard)
		case scheduler.Cancel:
			a.leaves(d.shard)
		default:
			return nil, fmt.Errorf("the scheduler asks a queue to %s", x)
		}
		out = append(out, d)
	}
	return out, nil
}

// leaves takes a shard from its queue.
func (a *assignment) leaves(shard int) {
	place := &a.shards[shard]
	if place.attempt == 0 {
		return
	}
	at := &a.queues[place.queue]
	at.running = slices.DeleteFunc(at.running, func(s int) bool { return s == shard })
	place.attempt = 0
}

// submit adds a shard.
func (a *assignment) submit(now float64, shard int) ([]order, error) {
	e := scheduler.Event{Kind: scheduler.Submit, Episode: shard, Spec: scheduler.Spec{Group: shard, Most: a.tokens}}
	if !a.begun {
		a.early = append(a.early, e)
		return nil, nil
	}
	return a.tell(now, e)
}

// joins notes that a queue has a worker, with so much room. Where the room for tokens is known, the queue takes as many
// shards as have room in the worst case, and one more, so that the engine has work while the last episodes of the
// others end.
func (a *assignment) joins(now float64, queue int, room api.Room) ([]order, error) {
	at := &a.queues[queue]
	at.room, at.up, at.perToken = room, true, 0
	rows := max(room.Shards, 1)
	e := scheduler.Engine{Capacity: rows * a.tokens, Rows: rows}
	if room.Tokens > 0 {
		e.Capacity = max(room.Tokens, a.tokens) + a.tokens
	}
	return a.tell(now, scheduler.Event{Kind: scheduler.Joined, Engine: queue, As: &e})
}

// ended notes that an attempt at a shard, which sampled so many tokens, has finished it.
func (a *assignment) ended(now float64, shard, attempt int, tokens int64) ([]order, error) {
	place := a.shards[shard]
	if place.attempt != attempt { // it had been given up
		return a.withdraw(now, shard)
	}
	a.queues[place.queue].done++
	a.leaves(shard)
	return a.tell(now, scheduler.Event{Kind: scheduler.Ended, Episode: shard, Attempt: place.attempt,
		Tokens: int(tokens)})
}

// begin has the shards assigned that were submitted so far, and from now on each when it is submitted.
func (a *assignment) begin(now float64) ([]order, error) {
	events := a.early
	a.early, a.begun = nil, true
	return a.tell(now, events...)
}

// withdraw notes that a shard has failed for good, or is done although the attempt had been given up.
func (a *assignment) withdraw(now float64, shard int) ([]order, error) {
	a.leaves(shard)
	return a.tell(now, scheduler.Event{Kind: scheduler.Withdrawn, Episode: shard})
}

// vanished notes that a queue has not taken a running shard, or that the worker that had taken it is silent. Other
// shards that run there may have another worker: the queue takes none until one of them has ended. When no other runs
// there, the queue is lost.
func (a *assignment) vanished(now float64, shard int) ([]order, error) {
	place := a.shards[shard]
	a.leaves(shard)
	at := &a.queues[place.queue]
	if len(at.running) > 0 {
		return a.tell(now, scheduler.Event{Kind: scheduler.Evicted, Episode: shard, Attempt: place.attempt})
	}
	at.up = false
	return a.tell(now, scheduler.Event{Kind: scheduler.Lost, Engine: place.queue})
}

// failed notes that a queue has failed on a running shard, if another queue that is up may do better.
func (a *assignment) failed(now float64, shard int) (_ []order, again bool, _ error) {
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

// observe notes how fast the shards of the queues go on.
func (a *assignment) observe(now float64, seen api.Observed) ([]order, error) {
	var events []scheduler.Event
	for i := range a.queues {
		q := &a.queues[i]
		k := slices.IndexFunc(seen.Queues, func(o api.ObservedQueue) bool { return o.Queue == q.name })
		if k < 0 || seen.Queues[k].PerToken <= 0 || !q.up {
			continue
		}
		q.perToken = seen.Queues[k].PerToken
		events = append(events, scheduler.Event{Kind: scheduler.Rate, Engine: i, PerToken: q.perToken})
	}
	return a.tell(now, events...)
}

// up counts the queues that have a worker.
func (a *assignment) up() (n int) {
	for _, q := range a.queues {
		if q.up {
			n++
		}
	}
	return n
}

// markdown shows the queues. The numbers of the shards begin at first.
func (a *assignment) markdown(first int) string {
	var b strings.Builder
	b.WriteString("| queue | worker | shards that run | done | tokens/s of a shard |\n|:--|:--|:--|--:|--:|\n")
	for _, q := range a.queues {
		worker, shards, rate := "none", "", ""
		if q.up {
			worker = fmt.Sprintf("%s, %s", q.room.Host, q.room.Engine)
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
