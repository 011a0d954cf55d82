package simulate

import (
	"cmp"
	"math"
	"slices"
)

// static is a world in which every engine has an equal share of consecutive rollouts from the start. It generates one
// turn of all its rollouts, then runs their calls, then generates the next turn.
//
// Source: rStar2-Agent §3.2, the static allocation of VERL v0.2 and SGLang. All rollouts of an engine start at once, up
// to its rows. When its cache is full, the half of them that began last is dropped; what was dropped is computed again
// after the engine's other rollouts have ended. Departures, in favour of the baseline: the text of dropped rows is
// kept, and prefixes stay cached between turns while memory lasts.
type static struct {
	*world
	parts []part
}

// part is an engine's share.
type part struct {
	queue   []int // that could start a turn
	dropped []int // that wait until the others have ended
	held    []int // whose calls wait for the turns of others
	calls   int   // that run
	open    int   // rollouts that have not ended and were not dropped
}

// allocate simulates a job under static allocation.
func allocate(j *job) (*outcome, error) {
	s := &static{world: newWorld(j, 0), parts: make([]part, j.engines)}
	for i := range j.rollouts {
		p := &s.parts[i*j.engines/len(j.rollouts)]
		p.queue = append(p.queue, i)
		p.open++
	}
	for _, e := range s.engines {
		s.fill(e)
	}
	for s.ended < len(s.flights) {
		at := s.next()
		if math.IsInf(at, 1) {
			break
		}
		s.now = max(at, s.now)
		s.happen(s.settle, s.hear)
	}
	return s.outcome()
}

func (s *static) hear(c call) {
	s.answer(c.rollout)
	e := s.engines[s.flights[c.rollout].engine]
	p := &s.parts[e.id]
	p.calls--
	p.queue = append(p.queue, c.rollout)
	e.advance(s.now)
	s.fill(e)
}

// settle handles the turns of an engine that have ended, and a full cache.
func (s *static) settle(e *engine) {
	p := &s.parts[e.id]
	for i, ok := e.ended(); ok; i, ok = e.ended() {
		if s.flights[i].turn+1 == len(s.job.rollouts[i].turns) {
			s.finish(e, i)
			p.open--
			continue
		}
		e.keep(i)
		p.held = append(p.held, i)
	}
	if e.full() {
		rows := s.newest(e)
		for _, r := range rows[:max(len(rows)/2, 1)] {
			s.evict(e, r.rollout)
			p.dropped = append(p.dropped, r.rollout)
			p.open--
		}
	}
	s.fill(e)
}

// newest returns the rows of an engine, those that began last first.
func (w *world) newest(e *engine) []row {
	rows := e.decoded()
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(w.flights[b.rollout].begun, w.flights[a.rollout].begun),
			cmp.Compare(b.rollout, a.rollout))
	})
	return rows
}

// evict drops a row whose tokens are kept as text.
func (w *world) evict(e *engine, i int) {
	n := e.drop(&w.flights[i])
	w.flights[i].prefix += n
	w.flights[i].left -= n
	w.evictions++
}

// fill starts what the engine has rows and memory for, once no call of the turn before is out. When all that was not
// dropped has ended, what was dropped starts again; and when the turn of all rollouts has ended, their calls are
// dispatched.
func (s *static) fill(e *engine) {
	p := &s.parts[e.id]
	if p.open == 0 && len(p.dropped) > 0 {
		p.queue, p.dropped, p.open = p.dropped, nil, len(p.dropped)
	}
	for len(p.queue) > 0 && p.calls == 0 && s.fits(e, p.queue[0]) {
		i := p.queue[0]
		p.queue = p.queue[1:]
		s.begin(e, i, s.flights[i].attempt+1)
	}
	if len(p.queue) == 0 && e.active == 0 && len(e.joining) == 0 {
		held := p.held
		p.held = nil
		for _, i := range held {
			p.calls++
			s.finish(e, i)
		}
	}
	s.set(e)
}

func (s *static) fits(e *engine, i int) bool {
	rows := e.active + len(e.joining)
	return rows < e.rows && (rows == 0 || e.used+float64(s.flights[i].prefix) <= float64(e.tokens))
}
