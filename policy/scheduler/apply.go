package scheduler

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"math"
	"slices"
)

// apply changes the state by one event.
func (c *Core) apply(v Event) error {
	switch v.Kind {
	case Submit:
		return c.submit(v)
	case Withdrawn:
		if e := c.episodes[v.Episode]; e != nil {
			c.unlink(e)
		}
		delete(c.episodes, v.Episode)
		return nil
	case StretchEnded, TurnEnded, Ended, Evicted, Failed, Returned:
		e, err := c.find(v)
		if e == nil || err != nil {
			return err
		}
		return c.progress(e, v)
	case Publish:
		if v.Version < c.target {
			return fmt.Errorf("version %d comes after version %d", v.Version, c.target)
		}
		c.target, c.loaded = v.Version, false
		c.noteChangeOfAll()
		return nil
	}
	if v.Engine < 0 || v.Engine >= len(c.engines) {
		return fmt.Errorf("there is no engine %d", v.Engine)
	}
	return c.report(v.Engine, v)
}

// submit queues an episode.
func (c *Core) submit(v Event) error {
	if _, known := c.episodes[v.Episode]; known {
		return fmt.Errorf("episode %d is known already", v.Episode)
	}
	s := v.Spec
	if s.Class < 0 || s.Class >= classes || s.Prompt < 0 || s.Stretch < 0 || s.Most < 1 || s.Most < s.Prompt {
		return fmt.Errorf("episode %d has class %d, a prompt of %d tokens and at most %d tokens", v.Episode, s.Class,
			s.Prompt, s.Most)
	}
	if !slices.ContainsFunc(c.engines, func(e engine) bool { return e.holds(s.Most, s.Most) }) {
		return fmt.Errorf("episode %d can come to hold %d tokens, more than any engine", v.Episode, s.Most)
	}
	if s.Cached < 0 || s.Cached > s.Prompt || s.Cached > 0 && (s.Home < 0 || s.Home >= len(c.engines)) {
		return fmt.Errorf("episode %d has %d of %d tokens in the cache of engine %d", v.Episode, s.Cached, s.Prompt,
			s.Home)
	}
	e := &episode{Spec: s, id: v.Episode, engine: -1, held: s.Prompt}
	c.episodes[e.id] = e
	if s.Cached > 0 && c.engines[s.Home].up && c.canRun(s.Home, e) {
		c.setHome(e, s.Home)
		e.setState(parked)
		c.answer(e, s.Cached)
		return nil
	}
	if c.queued[s.Class] == 0 { // a class that was away is not owed the room that others used meanwhile
		for other := range c.served {
			if c.queued[other] > 0 {
				c.served[s.Class] = max(c.served[s.Class], c.served[other])
			}
		}
	}
	c.queues[s.Class].push(e.setState(queued))
	c.queued[s.Class]++
	return nil
}

// find returns the episode of an event about an attempt; nil if the attempt has been given up.
func (c *Core) find(v Event) (*episode, error) {
	e, known := c.episodes[v.Episode]
	if !known {
		return nil, fmt.Errorf("there is no episode %d", v.Episode)
	}
	returned := v.Kind == Returned
	if e == nil || e.attempt != v.Attempt || returned != (e.state == calling || e.state == parked) ||
		!returned && e.state != running {
		c.stats.Late++
		return nil, nil
	}
	if v.Tokens < 0 || v.Held < 0 || v.Cached < 0 || v.Held > e.Most || v.Kind != Ended && v.Held < e.held {
		return nil, fmt.Errorf(
			"episode %d holds %d tokens after %d, %d of them cached, and may hold %d",
			v.Episode,
			v.Held,
			e.held,
			v.Cached,
			e.Most,
		)
	}
	return e, nil
}

// progress applies what has happened to an episode's current attempt.
func (c *Core) progress(e *episode, v Event) error {
	if v.Kind == Returned {
		c.pace.grown += float64(v.Held - e.held)
		e.held = v.Held
		c.answer(e, min(v.Cached, v.Held))
		return nil
	}
	at := &c.engines[e.engine]
	at.generating--
	c.noteChange(e.engine)
	if v.Kind == Evicted {
		c.stats.Evicted++
		e.evictions++
		e.held = v.Held
		c.releaseRoom(e)
		c.leaveHome(e)
		at.full = at.rows > 0
		c.rejoins(e)
		return nil
	}
	if v.Kind == Failed {
		c.stats.Repeated++
		e.failed = append(e.failed, e.engine)
		e.held = v.Held
		c.releaseRoom(e)
		c.leaveHome(e)
		c.rejoins(e)
		return nil
	}
	c.observe(e, v)
	if v.Kind == StretchEnded {
		e.held = v.Held
		e.state = calling // with a tool that has answered
		c.answer(e, v.Held)
		return nil
	}
	e.turns++
	if v.Kind == Ended {
		c.endEpisode(e)
		return nil
	}
	e.held = v.Held
	if v.Most > 0 {
		if v.Most > e.Most || v.Most < v.Held {
			return fmt.Errorf(
				"episode %d: at most %d tokens after at most %d, with %d held",
				e.id,
				v.Most,
				e.Most,
				v.Held,
			)
		}
		e.Most = v.Most
	}
	if c.settings.Reserve == Worst {
		c.resize(e)
	}
	t := e.setState(calling)
	if !c.settings.Hold {
		heap.Push(&c.timers, timer{c.now + c.settings.Park, t})
	}
	return nil
}

// endEpisode takes an episode out of the schedule.
func (c *Core) endEpisode(e *episode) {
	c.stats.Ended++
	e.state = calling // the turn is over, and counted
	c.unlink(e)
}

// answer notes that an episode can go on. It does when all events of the moment are known.
func (c *Core) answer(e *episode, cached int) {
	e.cached = cached
	c.answered = append(c.answered, ticket{e.id, e.number})
}

// resume continues the episodes whose tools have answered.
func (c *Core) resume() {
	for _, t := range c.answered {
		if e := c.episodes[t.episode]; e != nil && (e.state == calling || e.state == parked) {
			c.continueEpisode(e, e.cached)
		}
	}
	c.answered = c.answered[:0]
}

// continueEpisode continues an episode: at once if it still has room, else when its home has.
func (c *Core) continueEpisode(e *episode, cached int) {
	if e.engine < 0 { // the home is lost
		c.rejoins(e)
		return
	}
	at := &c.engines[e.engine]
	if i, ok := c.betterEngine(e); ok {
		if e.state == calling {
			c.park(e)
		}
		e.moved = true
		c.reserve(e, i, c.size(e))
		c.start(e, i, 0)
		return
	}
	stays := c.continues(at, e) && c.staysHome(at, e, cached)
	if e.state == calling && stays && c.canGrow(at, e) {
		c.resize(e)
		c.start(e, e.engine, cached)
		return
	}
	if e.state == calling {
		c.park(e)
	}
	c.keepInCache(e, max(c.size(e), c.expected(e)))
	e.cached = cached
	drains := at.draining(c)
	if !drains && (!stays || cached == 0) {
		c.rejoins(e)
		return
	}
	t := e.setState(waiting)
	at.back.push(t)
	at.waiting++
	c.noteChange(e.engine)
	if !drains {
		heap.Push(&c.timers, timer{c.now + at.recompute(cached), t})
	}
}

// rejoins queues an episode for any engine.
func (c *Core) rejoins(e *episode) {
	c.again.push(e.setState(ready))
	c.rejoin++
}

// expire parks the episodes whose tools are slow, and takes those who have waited for their homes long enough.
//
// How long is enough? Waiting costs time that is not known; leaving costs the time in which the prefix is computed
// elsewhere. An episode that waits for just that time and then leaves never pays more than twice the better of both.
func (c *Core) expire() {
	for len(c.timers) > 0 && c.timers[0].at <= c.now {
		t := heap.Pop(&c.timers).(timer)
		e := c.episodes[t.of.episode]
		if e == nil || e.number != t.of.number {
			continue
		}
		if e.state == waiting {
			c.engines[e.engine].waiting--
			c.noteChange(e.engine)
			c.rejoins(e)
			continue
		}
		c.park(e)
	}
}

// park frees the room of an episode between two turns.
func (c *Core) park(e *episode) {
	c.emit(Action{Do: Park, Episode: e.id, Engine: e.engine, Attempt: e.attempt})
	c.stats.Parked++
	c.releaseRoom(e)
	c.keepInCache(e, max(c.size(e), c.expected(e)))
	e.setState(parked)
}

// report applies what has happened to an engine.
func (c *Core) report(i int, v Event) error {
	at := &c.engines[i]
	switch v.Kind {
	case Rate:
		if !duration(v.PerToken) || !duration(v.Prefill) {
			return fmt.Errorf("engine %d takes %g seconds for a token and computes %g a second of a prefix", i,
				v.PerToken, v.Prefill)
		}
		if v.Prefill > 0 {
			at.Prefill = v.Prefill
		}
		if at.up && v.PerToken > 0 {
			c.noted(i, v.PerToken, 0.5)
			c.pace.due = true
		}
	case Limit:
		if v.Rows < 0 {
			return fmt.Errorf("engine %d takes %d episodes", i, v.Rows)
		}
		at.limit = v.Rows
		c.noteChange(i)
	case Lost:
		c.loseEngine(i)
	case Joined:
		if at.up {
			return fmt.Errorf("engine %d is up already", i)
		}
		if v.As != nil {
			if err := v.As.check(i); err != nil {
				return err
			}
			at.Engine = *v.As
			c.compareLongest()
		}
		at.up, at.loading, at.Version, at.rate = true, false, v.Version, rate{}
		at.limit = cmp.Or(at.Rows, math.MaxInt)
		for _, t := range c.stranded {
			if e := c.episodes[t.episode]; e != nil && e.number == t.number {
				c.again.push(t)
			}
		}
		c.stranded, c.pace.due, c.loaded = nil, true, false
		c.noteChangeOfAll()
	case Loaded:
		if !at.up {
			return nil // it was lost meanwhile
		}
		if !at.loading {
			return fmt.Errorf("engine %d was not asked to load", i)
		}
		at.loading, at.Version = false, v.Version
		for _, id := range at.home { // caches of the old weights are void
			e := c.episodes[id]
			c.dropFromCache(e)
			e.cached = 0
		}
		c.noteChangeOfAll()
	default:
		return errors.New("unknown kind of event")
	}
	return nil
}

// loseEngine returns the episodes of a lost engine to the queue, with their finished turns.
func (c *Core) loseEngine(i int) {
	at := &c.engines[i]
	if !at.up {
		return
	}
	at.up, at.loading, at.rate, c.pace.due = false, false, rate{}, true
	ids := slices.Clone(at.home)
	slices.Sort(ids)
	for _, id := range ids {
		e := c.episodes[id]
		c.releaseRoom(e)
		was := e.state
		if was == running {
			at.generating--
			e.attempt++ // what the lost engine may still report is late
			c.stats.Repeated++
		}
		if was == waiting {
			at.waiting--
		}
		c.leaveHome(e)
		switch was {
		case running, waiting:
			c.rejoins(e)
		case calling: // its tool still runs
			e.setState(parked)
		}
	}
	c.noteChangeOfAll()
}
