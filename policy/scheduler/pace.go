package scheduler

import (
	"math"
	"math/bits"
	"slices"
)

// forget is after how many seconds without a turn an engine's slowness counts half. An engine that is no straggler any
// more by this alone is on trial: it takes one new episode at a time until it has shown how fast it is.
const forget = 30

// rate is how fast an engine has been.
type rate struct {
	perToken  float64 // seconds for one token of a row; 0 = not known
	slow      float64 // perToken over that of the fastest engines with as many rows
	seen      float64 // when
	straggler bool
	trial     bool // it is a straggler, or was one when it was last measured
}

// classesOfRows is how many classes of rows are told apart: 1, 2–3, 4–7, …
const classesOfRows = 16

func classOf(rows int) int { return min(bits.Len(uint(max(rows, 1)))-1, classesOfRows-1) }

// pace is what has been learnt about lengths and rates.
type pace struct {
	ended  int // episodes
	turns  int
	tokens float64 // generated, in all
	grown  float64 // tokens by which episodes have grown: generated, or from tools
	// best is, by class of rows, the fastest recent rate of any engine; 0 = not known.
	best     [classesOfRows]float64
	usual    float64 // median rate of the engines that are no stragglers
	unjudged int     // observations since the engines were judged
	due      bool    // judge the engines at the next chance
	rates    []float64
}

// length estimates the tokens that an episode generates.
func (p *pace) length() float64 { return p.tokens / float64(max(p.ended, 1)) }

// turn is the mean of the tokens of a turn.
func (p *pace) turn() float64 { return p.tokens / float64(max(p.turns, 1)) }

// observe counts a rate that an engine has had with some rows. The best rates fade, so that they follow growing
// contexts.
func (p *pace) observe(perToken float64, rows int) {
	const fade = 1.001
	b := &p.best[classOf(rows)]
	if *b *= fade; *b == 0 || perToken < *b {
		*b = perToken
	}
}

// predict returns the rate of an engine of usual speed with some rows; 0 = not known. An engine is not slower with
// fewer rows, and at most twice as slow with twice the rows, so that every class that has been seen bounds the others.
func (p *pace) predict(rows int) float64 {
	class, least := classOf(rows), math.Inf(1)
	for k, b := range p.best {
		if b == 0 {
			continue
		}
		least = min(least, b*float64(uint(1)<<max(class-k, 0)))
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// observe learns from a stretch of generation that has ended.
func (c *Core) observe(e *episode, v Event) {
	c.pace.tokens += float64(v.Tokens)
	c.pace.grown += float64(v.Tokens)
	if v.Kind != StretchEnded {
		c.pace.turns++
	}
	if v.Kind == Ended {
		c.pace.ended++
	}
	c.pace.unjudged++
	if v.Tokens > 0 && c.now > e.began { // short turns say little, because they include a wait for prefixes
		c.noted(e.engine, (c.now-e.began)/float64(v.Tokens), 0.1*min(1, float64(v.Tokens)/100))
	}
}

// noted counts a rate of an engine. On trial an observation weighs half, so that a few of them decide.
func (c *Core) noted(i int, perToken, weight float64) {
	at := &c.engines[i]
	if at.trial {
		weight = max(weight, 0.5)
	}
	if at.perToken == 0 {
		at.perToken, at.slow = perToken, 1
	}
	rows := at.generating + 1
	at.perToken += weight * (perToken - at.perToken)
	c.pace.observe(at.perToken, rows)
	at.slow += weight * (perToken/c.pace.predict(rows) - at.slow)
	at.seen = c.now
	at.trial = at.trial && at.slow > c.settings.Straggler
}

// judge finds the stragglers, and takes their turns off where that pays. It looks once every few turns and whenever
// engines have reported.
func (c *Core) judge() {
	if !c.pace.due && c.pace.unjudged < max(len(c.engines), 8) {
		return
	}
	c.pace.due, c.pace.unjudged = false, 0
	rates := c.pace.rates[:0]
	for i := range c.engines {
		at := &c.engines[i]
		if !at.up || at.perToken == 0 {
			at.straggler = false
			continue
		}
		if at.generating == 0 && at.slow > 1 && c.now > at.seen {
			at.slow = max(1, at.slow*math.Exp2(-(c.now-at.seen)/forget))
			at.seen = c.now
		}
		was := at.straggler
		at.straggler = at.slow > c.settings.Straggler
		at.trial = at.trial || at.straggler
		if !at.trial {
			rates = append(rates, at.perToken)
		}
		if at.straggler || was {
			c.blocked = 0
			c.noteChange(i)
		}
	}
	c.pace.rates = rates
	if len(rates) == 0 {
		return
	}
	slices.Sort(rates)
	c.pace.usual = rates[len(rates)/2]
	for i := range c.engines {
		if c.engines[i].straggler {
			c.rescue(i)
		}
	}
}

// horizon estimates the seconds in which the engines that are not stragglers work off the queues.
func (c *Core) horizon() float64 {
	perSecond := 0.0
	for i := range c.engines {
		if at := &c.engines[i]; at.up && !at.trial && at.perToken > 0 {
			perSecond += float64(at.rows) / at.perToken
		}
	}
	if perSecond == 0 {
		return 0
	}
	return float64(c.queued[Training]+c.queued[Evaluation]+c.rejoin) * c.pace.length() / perSecond
}

// slack is how much later than elsewhere an episode may end on a straggler, as a share of its time elsewhere.
const slack = 0.5

// finishesInTime reports whether a straggler would have finished a new episode before an engine of usual speed has
// worked off the queue and then this episode.
func (c *Core) finishesInTime(at *engine) bool {
	length := max(c.pace.length(), c.pace.turn())
	return length*at.perToken <= c.horizon()+(1+slack)*length*c.pace.usual
}

// replaceable reports whether an engine that is no straggler, and has not failed on an episode, could hold it with a
// size.
func (c *Core) replaceable(e *episode, size int) bool {
	for i := range c.engines {
		if at := &c.engines[i]; at.up && !at.trial && at.holds(size, e.Most) && !at.draining(c) &&
			!slices.Contains(e.failed, i) {
			return true
		}
	}
	return false
}

// staysHome reports whether an episode goes on at home: the home is no straggler, or the episode would end there before
// it would end elsewhere, where its prefix is computed first.
func (c *Core) staysHome(at *engine, e *episode, cached int) bool {
	if !at.straggler || !c.replaceable(e, e.Most) {
		return true
	}
	return c.pace.length()*at.perToken <= c.horizon()+c.pace.length()*c.pace.usual+at.recompute(cached)
}

// recompute is the time in which an engine computes tokens of a prefix.
func (at *engine) recompute(tokens int) float64 {
	if at.Prefill == 0 {
		return 0
	}
	return float64(tokens) / at.Prefill
}

// rescue takes running turns off a straggler that would end earlier elsewhere, although they begin again there. How
// many tokens a turn still lacks is not known; the mean of a turn is assumed.
func (c *Core) rescue(i int) {
	at := &c.engines[i]
	if at.generating == 0 || at.draining(c) {
		return
	}
	turn, wait := c.pace.turn(), c.horizon()
	ids := slices.Clone(at.home)
	slices.Sort(ids)
	for _, id := range ids {
		e := c.episodes[id]
		if e.state != running || e.rescues >= c.settings.Rescues || !c.replaceable(e, e.Most) {
			continue
		}
		lost := (c.now - e.began) / at.perToken
		if turn*at.perToken <= wait+(lost+turn)*c.pace.usual+at.recompute(e.held) {
			continue
		}
		c.emit(Action{Do: Cancel, Episode: id, Engine: i, Attempt: e.attempt})
		c.stats.Rescued++
		c.stats.Repeated++
		e.rescues++
		e.attempt++
		at.generating--
		c.releaseRoom(e)
		c.leaveHome(e)
		c.rejoins(e)
	}
}

// crowd is how many running turns an engine has at least when episodes leave it for an engine that is empty.
const crowd = 2

// betterEngine finds an empty engine on which an episode would end sooner than at home, although its prefix is computed
// again there: once nothing is queued, engines run empty one by one, and the last episodes need not share one. An
// episode moves in this way once at most.
func (c *Core) betterEngine(e *episode) (engine int, ok bool) {
	home := &c.engines[e.engine]
	if e.moved || home.generating < crowd || c.queued[Training]+c.queued[Evaluation]+c.rejoin > 0 {
		return 0, false
	}
	for i := range c.engines {
		at := &c.engines[i]
		if len(at.home) > 0 || at.trial || at.slow == 0 || !c.canStart(i, e, c.size(e)) {
			continue
		}
		left := max(c.pace.length(), float64(e.held-e.Prompt)) // long episodes are likely to be longer
		if left*(home.perToken-at.slow*c.pace.predict(1)) > at.recompute(e.held) {
			return i, true
		}
	}
	return 0, false
}
