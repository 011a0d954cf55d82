package scheduler

import "slices"

// admit starts what fits.
func (c *Core) admit() {
	for k := 0; k < len(c.changed); k++ { // in the order of the engines' numbers would change nothing: they are apart
		c.startAtHome(c.changed[k])
	}
	for {
		e, ok := c.next()
		if !ok {
			c.blocked = 0 // engines may change before another episode comes
			break
		}
		size := c.size(e)
		i, ok := c.choose(e, size)
		if !ok {
			if !c.fitsAnEngine(e, size) {
				c.setAside(e)
				continue
			}
			c.block(e, size)
			break
		}
		cached := 0
		if i == e.engine {
			cached = e.cached
		}
		c.unqueue(e, size)
		c.reserve(e, i, size)
		c.start(e, i, cached)
	}
	for _, i := range c.changed {
		c.engines[i].isChanged = false
	}
	c.changed = c.changed[:0]
}

// startAtHome starts the episodes that wait for an engine, in the order in which they came.
func (c *Core) startAtHome(i int) {
	at := &c.engines[i]
	for at.waiting > 0 {
		e, ok := c.first(&at.back)
		if !ok || !c.continues(at, e) || !c.canRun(i, e) || !at.hasRoom(c.size(e)) {
			return
		}
		at.back.pop()
		at.waiting--
		c.reserve(e, i, c.size(e))
		c.start(e, i, e.cached)
	}
}

// next is the episode whose turn it is: one with finished turns, or the first of the class that has had the least of
// its share.
func (c *Core) next() (*episode, bool) {
	if e, ok := c.first(&c.again); ok {
		return e, true
	}
	best := -1
	for class := range c.queues {
		if c.queued[class] > 0 && (best < 0 || c.served[class] < c.served[best]) {
			best = class
		}
	}
	if best < 0 {
		return nil, false
	}
	return c.first(&c.queues[best])
}

// unqueue takes the next episode from the front of its queue.
func (c *Core) unqueue(e *episode, size int) {
	if e.state == ready {
		c.again.pop()
		c.rejoin--
		return
	}
	c.queues[e.Class].pop()
	c.queued[e.Class]--
	c.served[e.Class] += float64(size) / c.settings.Weights[e.Class]
}

// setAside puts an episode aside that is larger than every engine that is left, until another engine joins.
func (c *Core) setAside(e *episode) {
	if e.state == queued {
		c.queues[e.Class].pop()
		c.queued[e.Class]--
		c.rejoin++
	} else {
		c.again.pop()
	}
	c.stranded = append(c.stranded, e.setState(ready))
}

// block notes that no engine has room for an episode's size, so that only engines that change are looked at.
func (c *Core) block(e *episode, size int) {
	if !c.current(e) {
		c.blocked = 0 // the versions of weights, or what has failed, may be in the way, and not the room
	} else if c.blocked == 0 || size < c.blocked {
		c.blocked = size
	}
}

// current reports whether an episode may run wherever a new one of its size may begin.
func (c *Core) current(e *episode) bool {
	return (!e.started() || e.version == c.target) && len(e.failed) == 0 && !c.uneven
}

// canRun reports whether an engine may run an episode whatever its room: it is not too long for it, and the engine has
// not failed on it, or every other that could run it has, too.
func (c *Core) canRun(i int, e *episode) bool {
	if at := &c.engines[i]; at.Longest > 0 && e.Most > at.Longest {
		return false
	}
	if !slices.Contains(e.failed, i) {
		return true
	}
	size := c.size(e)
	for k := range c.engines {
		if at := &c.engines[k]; at.up && at.holds(size, e.Most) && !slices.Contains(e.failed, k) {
			return false
		}
	}
	return true
}

// fitsAnEngine reports whether an engine that is up could hold an episode with a size if it were empty.
func (c *Core) fitsAnEngine(e *episode, size int) bool {
	for i := range c.engines {
		if c.engines[i].up && c.engines[i].holds(size, e.Most) {
			return true
		}
	}
	return false
}

// size is the room that an episode is to be given.
func (c *Core) size(e *episode) int {
	expected := int(c.settings.Margin * float64(c.expected(e)))
	switch {
	case c.settings.Reserve == WorstStretch && e.Stretch > 0:
		return min(e.Most, max(expected, e.held+e.Stretch))
	case c.settings.Reserve == Expected && e.evictions == 0:
		return min(e.Most, max(expected, e.held+1))
	}
	return e.Most
}

// prior is how many ended episodes outweigh Settings.Length.
const prior = 64

// expected is how many tokens an episode is expected to hold in the end. Episodes that end first are short, so their
// mean would be too low. The tokens by which all episodes have grown, over the number of those that have ended, is not
// too low, if how long an episode still goes on does not depend on its length.
func (c *Core) expected(e *episode) int {
	if c.settings.Length > 0 {
		sum := c.pace.grown + prior*float64(max(c.settings.Length-e.Prompt, 0))
		return min(e.Most, e.Prompt+int(sum/float64(c.pace.ended+prior)))
	}
	if c.pace.ended == 0 {
		return e.Most
	}
	return min(e.Most, e.Prompt+int(c.pace.grown/float64(c.pace.ended)))
}

// canGrow reports whether an episode that has room can be given what its next stretch needs.
func (c *Core) canGrow(at *engine, e *episode) bool {
	return c.settings.Reserve != WorstStretch || at.reserved-e.reserved+c.size(e) <= at.Capacity
}

// hasRoom reports whether an engine has room for a size.
func (at *engine) hasRoom(size int) bool {
	return !at.full && at.Capacity-at.reserved >= size && at.rows < at.limit
}

// choose returns the engine that takes an episode. An episode that has a home goes there if there is room. Otherwise it
// is the engine that could take the most episodes of this size; on ties the one with the lowest number.
func (c *Core) choose(e *episode, size int) (int, bool) {
	if e.engine >= 0 {
		at := &c.engines[e.engine]
		if c.canStart(e.engine, e, size) && c.staysHome(at, e, e.cached) {
			return e.engine, true
		}
	}
	best, most := -1, 0
	look := func(i int) {
		at := &c.engines[i]
		if !c.canStart(i, e, size) || at.trial && !c.mayTryStraggler(at, e, size) {
			return
		}
		slots := min((at.Capacity-at.reserved)/size, at.limit-at.rows)
		if slots > most || slots == most && i < best {
			best, most = i, slots
		}
	}
	if c.blocked > 0 && size >= c.blocked && c.current(e) {
		for _, i := range c.changed {
			look(i)
		}
	} else {
		for i := range c.engines {
			look(i)
		}
	}
	return best, best >= 0
}

// mayTryStraggler reports whether an engine that is or was a straggler may start an episode: a new one, which it would
// finish in time, and one after the other. What it computes is little, and this is how it shows that it has recovered.
func (c *Core) mayTryStraggler(at *engine, e *episode, size int) bool {
	return !c.replaceable(e, size) || at.rows == 0 && !e.started() && c.finishesInTime(at)
}

// canStart reports whether an engine may start an episode's turn: it has room, no other episode waits to come home to
// it, and its weights are the right ones. A new episode also must not cost others their caches while the engine is
// busy.
func (c *Core) canStart(i int, e *episode, size int) bool {
	at := &c.engines[i]
	return at.hasRoom(size) && c.canRun(i, e) && at.waiting == 0 && c.continues(at, e) && c.hasWeightsOf(at, e) &&
		(e.started() || at.generating < c.settings.Busy || at.Capacity-at.reserved-at.kept >= size)
}

// reserve gives an episode room on an engine.
func (c *Core) reserve(e *episode, i, size int) {
	at := &c.engines[i]
	if e.engine >= 0 && e.engine != i {
		c.stats.Moved++
	}
	c.setHome(e, i)
	c.dropFromCache(e)
	at.reserved += size
	at.rows++
	e.reserved = size
}

// resize adapts the room of an episode to what it can still come to hold.
func (c *Core) resize(e *episode) {
	size := c.size(e)
	if e.reserved == 0 || size == e.reserved {
		return
	}
	if size < e.reserved {
		c.noteChange(e.engine)
	}
	c.engines[e.engine].reserved += size - e.reserved
	e.reserved = size
}

// start begins a turn of an episode that has room.
func (c *Core) start(e *episode, i, cached int) {
	at := &c.engines[i]
	e.setState(running)
	e.attempt++
	e.began, e.cached = c.now, 0
	at.generating++
	if e.turns == 0 && e.evictions == 0 {
		e.version = at.Version
	}
	if e.version != at.Version {
		c.stats.Mixed++
		e.version = at.Version
	}
	c.stats.Starts++
	c.emit(Action{Do: Start, Episode: e.id, Engine: i, Attempt: e.attempt, Cached: cached, Version: at.Version})
}
