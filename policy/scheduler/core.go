package scheduler

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Engine describes an engine.
type Engine struct {
	Capacity int     // tokens of KV cache that it gives out (see Capacity)
	Rows     int     // episodes that have room on it at once; 0 = no limit
	Longest  int     // tokens that an episode on it may come to hold; 0 = as many as its capacity
	Prefill  float64 // tokens of a prefix that it computes a second; 0 = the time is not known and does not count
	Version  int     // of its weights
}

// Core decides. It is for one goroutine.
type Core struct {
	settings Settings
	engines  []engine
	episodes map[int]*episode // nil = ended
	now      float64
	target   int  // version of the weights that episodes begin under
	loaded   bool // every engine that is up has that version, or has been asked to load it
	queues   [classes]fifo
	queued   [classes]int     // episodes in queues
	served   [classes]float64 // tokens reserved, divided by the class's weight
	again    fifo             // with finished turns, for any engine
	rejoin   int              // episodes in again
	stranded []ticket         // larger than every engine that is left
	answered []ticket         // episodes that can go on, of the events of this moment
	timers   timers
	changed  []int // engines whose room, rate or version has changed since the last admission
	uneven   bool  // engines differ in Longest, so that a size alone does not say where there is room
	blocked  int   // engines that have not changed have no room for this size; 0 = not known
	pace     pace
	stats    Stats
	events   []Event
	out      []Action
}

// engine is what the core knows about an engine.
type engine struct {
	Engine
	up, loading bool
	limit       int   // episodes that have room on it at once
	full        bool  // it has evicted an episode, and none has left it since
	reserved    int   // tokens
	rows        int   // episodes with room
	generating  int   // those whose turn runs
	kept        int   // tokens in its cache of episodes without room
	home        []int // episodes whose home it is
	back        fifo  // episodes that wait to come home
	waiting     int   // those in back
	isChanged   bool
	rate
}

// state is what an episode does.
type state int

const (
	queued  state = iota // never started, in its class's queue
	running              // a turn is generated
	calling              // a tool runs, and the episode has room
	parked               // it has none, and a tool runs
	waiting              // for room on its home
	ready                // for room on any engine
)

// episode is what the core knows about an episode that has not ended.
type episode struct {
	Spec
	id        int
	state     state
	number    int // voids the tickets and timers of earlier states
	engine    int // home, −1 = none
	at        int // index in the home's list
	attempt   int
	reserved  int // tokens on its home
	held      int // tokens of the prefix
	cached    int // of them in the home's cache
	kept      int // tokens that its home counts in kept
	turns     int // finished
	version   int // of the weights that it began with
	began     float64
	evictions int
	rescues   int
	moved     bool  // to an empty engine
	failed    []int // engines that have failed on it
}

// New makes a core with engines that are all up.
func New(settings Settings, engines []Engine) (*Core, error) {
	s, err := settings.resolved()
	if err != nil {
		return nil, fmt.Errorf("new scheduler: %w", err)
	}
	if len(engines) == 0 {
		return nil, errors.New("new scheduler: no engines")
	}
	c := &Core{settings: s, episodes: map[int]*episode{}, target: engines[0].Version}
	for i, e := range engines {
		if err := e.check(i); err != nil {
			return nil, fmt.Errorf("new scheduler: %w", err)
		}
		c.target = max(c.target, e.Version)
		c.engines = append(c.engines, engine{Engine: e, up: true, limit: cmp.Or(e.Rows, math.MaxInt)})
	}
	c.compareLongest()
	return c, nil
}

// compareLongest finds out whether the engines differ in how long an episode may be.
func (c *Core) compareLongest() {
	c.uneven = slices.ContainsFunc(c.engines, func(e engine) bool { return e.Longest != c.engines[0].Longest })
}

func (e Engine) check(i int) error {
	if e.Capacity < 1 || e.Rows < 0 || e.Longest < 0 || !duration(e.Prefill) {
		return fmt.Errorf("engine %d has %d tokens, %d rows, episodes of %d tokens and a prefill of %g tokens a second",
			i, e.Capacity, e.Rows, e.Longest, e.Prefill)
	}
	return nil
}

// holds reports whether an empty engine could hold an episode that takes a size now.
func (e Engine) holds(size, most int) bool {
	return e.Capacity >= size && (e.Longest == 0 || most <= e.Longest)
}

// Step applies the events of one moment and returns the decisions that follow, in order. now is in seconds since any
// start and never decreases. The actions are valid until the next call. Without events Step looks whether the time
// alone changes anything (Wake). An event that contradicts the state is an error, and the core is of no use afterwards.
func (c *Core) Step(now float64, events ...Event) ([]Action, error) {
	if !(now >= c.now) || !duration(now) {
		return nil, fmt.Errorf("scheduler: the time goes from %g to %g", c.now, now)
	}
	c.now, c.out = now, c.out[:0]
	c.events = append(c.events[:0], events...)
	if len(events) > 1 {
		slices.SortStableFunc(c.events, compare)
		c.spread()
	}
	for _, e := range c.events {
		if err := c.apply(e); err != nil {
			return nil, fmt.Errorf("scheduler: %s: %w", e.Kind, err)
		}
	}
	c.resume()
	c.expire()
	c.judge()
	c.load()
	c.admit()
	return c.out, nil
}

// spread reorders the episodes that are submitted at once, so that those of one group are far apart in the queue.
func (c *Core) spread() {
	n := 0
	for n < len(c.events) && c.events[n].Kind == Submit {
		n++
	}
	if n < 2 {
		return
	}
	groups, before := make([]int, n), slices.Clone(c.events[:n])
	for i, e := range before {
		groups[i] = e.Spec.Group
	}
	for i, from := range apart(groups) {
		c.events[i] = before[from]
	}
}

// Wake is the moment at which Step is to be called if nothing happens before.
func (c *Core) Wake() (at float64, ok bool) {
	for len(c.timers) > 0 {
		t := c.timers[0]
		if e := c.episodes[t.of.episode]; e != nil && e.number == t.of.number {
			return t.at, true
		}
		heap.Pop(&c.timers)
	}
	return 0, false
}

// Stats returns the counts so far.
func (c *Core) Stats() Stats { return c.stats }

// Open is how many episodes have not ended, and Idle how many of them wait for room.
func (c *Core) Open() (open, idle int) {
	for _, e := range c.episodes {
		if e == nil {
			continue
		}
		open++
		if e.state == queued || e.state == waiting || e.state == ready {
			idle++
		}
	}
	return open, idle
}

// Reserved returns the tokens that are reserved on each engine.
func (c *Core) Reserved() []int {
	out := make([]int, len(c.engines))
	for i := range c.engines {
		out[i] = c.engines[i].reserved
	}
	return out
}

func (c *Core) emit(a Action) { c.out = append(c.out, a) }

// noteChange notes that an engine may take what it could not take before.
func (c *Core) noteChange(i int) {
	if !c.engines[i].isChanged {
		c.engines[i].isChanged = true
		c.changed = append(c.changed, i)
	}
}

// noteChangeOfAll notes that nothing is known about any engine's room.
func (c *Core) noteChangeOfAll() {
	c.blocked = 0
	for i := range c.engines {
		c.noteChange(i)
	}
}

// setState moves an episode into another state.
func (e *episode) setState(s state) ticket {
	e.state = s
	e.number++
	return ticket{e.id, e.number}
}

// setHome makes an engine the episode's home.
func (c *Core) setHome(e *episode, i int) {
	if e.engine == i {
		return
	}
	c.leaveHome(e)
	e.engine, e.at = i, len(c.engines[i].home)
	c.engines[i].home = append(c.engines[i].home, e.id)
}

// leaveHome takes an episode from its home's list.
func (c *Core) leaveHome(e *episode) {
	if e.engine < 0 {
		return
	}
	c.dropFromCache(e)
	list := c.engines[e.engine].home
	last := list[len(list)-1]
	list[e.at] = last
	if moved := c.episodes[last]; moved != nil {
		moved.at = e.at
	}
	c.engines[e.engine].home = list[:len(list)-1]
	c.noteChange(e.engine) // it may be empty now, and load
	e.engine, e.cached = -1, 0
}

// releaseRoom gives the episode's room back.
func (c *Core) releaseRoom(e *episode) {
	if e.reserved == 0 {
		return
	}
	at := &c.engines[e.engine]
	at.reserved -= e.reserved
	at.rows--
	at.full = false
	e.reserved = 0
	c.noteChange(e.engine)
}

// keepInCache counts tokens of an episode without room in its home's cache.
func (c *Core) keepInCache(e *episode, tokens int) {
	c.dropFromCache(e)
	c.engines[e.engine].kept += tokens
	e.kept = tokens
}

func (c *Core) dropFromCache(e *episode) {
	if e.kept > 0 {
		c.engines[e.engine].kept -= e.kept
		e.kept = 0
		c.noteChange(e.engine)
	}
}

// unlink takes an episode out of every list that it is in, whatever its state.
func (c *Core) unlink(e *episode) {
	switch e.state {
	case queued:
		c.queued[e.Class]--
	case running:
		c.engines[e.engine].generating--
	case waiting:
		c.engines[e.engine].waiting--
		c.noteChange(e.engine)
	case ready:
		c.rejoin--
	}
	c.releaseRoom(e)
	c.leaveHome(e)
	e.number++
	c.episodes[e.id] = nil
}
