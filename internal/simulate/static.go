package simulate

import (
	"cmp"
	"math"
	"slices"
)

// Wait says how a statically allocated engine treats tool calls.
type Wait string

// ForAll is the papers' baseline: an engine generates one turn of all its rollouts, then runs their tool calls, then
// generates the next turn. ForNone dispatches every call at once, as the scheduler does: a stronger baseline, which
// lacks only the allocation of room.
const (
	ForAll  Wait = "all"
	ForNone Wait = "none"
)

// Static simulates a job with every engine given an equal share of consecutive rollouts at the start.
//
// Source: rStar2-Agent §3.2, the static allocation of VERL v0.2 and SGLang. All rollouts of an engine start at once, up
// to its rows. When its cache is full, the half of them that began last is dropped; what was dropped is computed again
// after the engine's other rollouts have ended. Departures, all in favour of the baseline: the text of dropped rows is
// kept, prefixes stay cached between turns while memory lasts, and the rollouts of a lost engine are spread over the
// others at once.
func Static(job *Job, wait Wait) (Result, error) {
	s := &static{world: newWorld(job, 0), wait: wait, parts: make([]part, len(job.Engines))}
	for i := range job.Rollouts {
		e := i * len(job.Engines) / len(job.Rollouts)
		s.parts[e].queue = append(s.parts[e].queue, i)
		s.parts[e].open++
	}
	if err := s.run(); err != nil {
		return Result{}, err
	}
	return s.close(), nil
}

// part is an engine's share.
type part struct {
	queue   []int // that could start a turn
	dropped []int // that wait until the others have ended
	held    []int // whose calls wait for the turns of others (ForAll)
	calls   int   // that run
	open    int   // rollouts that have not ended and were not dropped
}

type static struct {
	*world
	wait  Wait
	parts []part
}

func (s *static) run() error {
	for e := range s.parts {
		s.fill(s.servers[e])
	}
	for {
		s.tools.send(s.now)
		at := s.next()
		if _, calls := s.tools.next(); s.result.Ended == len(s.flights) && !calls && len(s.tools.queue) == 0 {
			return nil
		}
		if math.IsInf(at, 1) {
			return s.stuck()
		}
		s.now = max(at, s.now)
		s.collect()
	}
}

func (s *static) collect() {
	for {
		e, ok := s.awake()
		if !ok {
			break
		}
		s.settle(e)
	}
	for {
		c, ok := s.tools.answered(s.now)
		if !ok {
			break
		}
		if c.verify {
			s.last = s.now
			continue
		}
		s.answer(c.rollout)
		e := s.flights[c.rollout].server
		s.parts[e].calls--
		s.queue(e, c.rollout)
	}
	for len(s.fails) > 0 && s.fails[0].At <= s.now {
		x := s.fails[0]
		s.fails = s.fails[1:]
		if e := s.strike(x); x.Event == eventLost {
			s.spread(e.id)
		}
	}
}

// queue puts a rollout into its engine's queue, or into that of another if the engine is lost.
func (s *static) queue(e, i int) {
	if s.servers[e].speed == 0 {
		s.parts[e].open--
		for other := range s.parts { // the one with the fewest
			if s.servers[other].speed > 0 && (s.servers[e].speed == 0 || s.parts[other].open < s.parts[e].open) {
				e = other
			}
		}
		s.parts[e].open++
	}
	s.parts[e].queue = append(s.parts[e].queue, i)
	s.touch(s.servers[e])
	s.fill(s.servers[e])
}

// spread gives the rollouts of a lost engine to the others. Those whose calls run follow when they are answered.
func (s *static) spread(e int) {
	p := &s.parts[e]
	ids := slices.Concat(p.queue, p.dropped)
	p.open += len(p.dropped)
	for i := range s.flights {
		if f := &s.flights[i]; f.server == e && (f.place == decoding || f.place == joining || f.place == away) &&
			f.attempt > 0 && f.turn < len(s.job.Rollouts[i].Turns) && f.left > 0 && f.life == s.servers[e].life-1 {
			ids = append(ids, i)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for _, i := range p.held {
		s.call(e, i)
	}
	p.queue, p.dropped, p.held = nil, nil, nil
	for _, i := range ids {
		s.queue(e, i)
	}
}

// settle handles the turns of an engine that have ended, and a full cache.
func (s *static) settle(e *server) {
	p := &s.parts[e.id]
	for {
		i, ok := e.ended()
		if !ok {
			break
		}
		if s.flights[i].turn+1 == len(s.job.Rollouts[i].Turns) {
			s.finish(e, i)
			p.open--
			continue
		}
		e.keep(i, &s.flights[i])
		p.held = append(p.held, i)
		if s.wait == ForNone {
			s.release(e.id)
		}
	}
	if e.full() {
		s.halve(e, p)
	}
	s.fill(e)
}

// halve drops the half of the rows that began last.
func (s *static) halve(e *server, p *part) {
	rows := e.newest()
	slices.SortFunc(rows, func(a, b row) int {
		x, y := &s.flights[a.rollout], &s.flights[b.rollout]
		return cmp.Or(cmp.Compare(y.begun, x.begun), cmp.Compare(b.rollout, a.rollout))
	})
	for _, r := range rows[:max(len(rows)/2, 1)] {
		s.evict(e, r.rollout)
		p.dropped = append(p.dropped, r.rollout)
		p.open--
	}
}

// fill starts what the engine has rows and memory for. When all that was not dropped has ended, what was dropped
// starts again; and when the turn of all rollouts has ended, their calls are dispatched.
func (s *static) fill(e *server) {
	p := &s.parts[e.id]
	if p.open == 0 && len(p.dropped) > 0 {
		p.queue, p.dropped, p.open = p.dropped, nil, len(p.dropped)
	}
	for len(p.queue) > 0 && s.starts(e, p.queue[0]) {
		i := p.queue[0]
		p.queue = p.queue[1:]
		f := &s.flights[i]
		s.begin(e, i, f.attempt+1)
	}
	if len(p.queue) == 0 && e.rows == 0 && len(e.joining) == 0 {
		s.release(e.id)
	}
	s.set(e)
}

// starts reports whether a rollout may start its turn: with ForAll only while no call of the turn before is out.
func (s *static) starts(e *server, i int) bool {
	p := &s.parts[e.id]
	if s.wait == ForAll && p.calls > 0 {
		return false
	}
	rows := e.rows + len(e.joining)
	return rows < e.Rows && (rows == 0 || e.used+float64(s.flights[i].prefix) <= float64(e.Tokens))
}

// release dispatches the calls that waited for other turns.
func (s *static) release(e int) {
	p := &s.parts[e]
	held := p.held
	p.held = nil
	for _, i := range held {
		s.call(e, i)
	}
}

func (s *static) call(e, i int) {
	s.parts[e].calls++
	s.finish(s.servers[e], i)
}
