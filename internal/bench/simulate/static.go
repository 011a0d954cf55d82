package main

import (
	"cmp"
	"math"
	"slices"
)

// static is a world in which every engine has an equal share of consecutive rollouts from the start.
//
// Source: rStar2-Agent §3.2, the static allocation of VERL v0.2 and SGLang. All rollouts of an engine start at once, up
// to its rows. When its cache is full, the half of them that began last is dropped; what was dropped is computed again
// after the engine's other rollouts have ended. Departures, all in favour of the baseline: the text of dropped rows is
// kept, prefixes stay cached between turns while memory lasts, and the rollouts of a lost engine are spread over the
// others at once.
type static struct {
	*world
	// together has an engine generate one turn of all its rollouts, then run their calls, then generate the next turn:
	// the paper's baseline. Else every call leaves at once, as under the scheduler: a stronger baseline, which lacks
	// only the allocation of room.
	together bool
	parts    []part
}

// part is an engine's share.
type part struct {
	queue   []int // that could start a turn
	dropped []int // that wait until the others have ended
	held    []int // whose calls wait for the turns of others (together)
	calls   int   // that run
	open    int   // rollouts that have not ended and were not dropped
}

// allocate simulates a job under static allocation.
func allocate(j *job, together bool) (*outcome, error) {
	s := &static{world: newWorld(j, 0), together: together, parts: make([]part, len(j.engines))}
	for i := range j.rollouts {
		p := &s.parts[i*len(j.engines)/len(j.rollouts)]
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
		s.happen(s.settle, s.hear, func(e *engine, x failure) {
			if x.speed == 0 {
				s.spread(e.id)
			}
		})
	}
	return s.outcome()
}

func (s *static) hear(c call) {
	s.answer(c.rollout)
	e := s.flights[c.rollout].engine
	s.parts[e].calls--
	s.enqueue(e, c.rollout)
}

// enqueue puts a rollout into its engine's queue, or into that of the one with the fewest if the engine is lost.
func (s *static) enqueue(e, i int) {
	if s.engines[e].speed == 0 {
		s.parts[e].open--
		for other := range s.parts {
			if s.engines[other].speed > 0 && (s.engines[e].speed == 0 || s.parts[other].open < s.parts[e].open) {
				e = other
			}
		}
		s.parts[e].open++
	}
	s.parts[e].queue = append(s.parts[e].queue, i)
	s.engines[e].advance(s.now)
	s.fill(s.engines[e])
}

// spread gives the rollouts of a lost engine to the others. Those whose calls run follow when they are answered.
func (s *static) spread(e int) {
	p := &s.parts[e]
	ids := slices.Concat(p.queue, p.dropped)
	p.open += len(p.dropped)
	for i := range s.flights {
		if f := &s.flights[i]; f.engine == e && (f.place == joining || f.place == away) && f.attempt > 0 &&
			f.turn < len(s.job.rollouts[i].turns) && f.left > 0 && f.life == s.engines[e].life-1 {
			ids = append(ids, i)
		}
	}
	slices.Sort(ids)
	held := p.held
	p.queue, p.dropped, p.held = nil, nil, nil
	for _, i := range held {
		s.call(e, i)
	}
	for _, i := range slices.Compact(ids) {
		s.enqueue(e, i)
	}
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
		if !s.together {
			s.release(e.id)
		}
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

// fill starts what the engine has rows and memory for. When all that was not dropped has ended, what was dropped
// starts again; and when the turn of all rollouts has ended, their calls are dispatched.
func (s *static) fill(e *engine) {
	p := &s.parts[e.id]
	if p.open == 0 && len(p.dropped) > 0 {
		p.queue, p.dropped, p.open = p.dropped, nil, len(p.dropped)
	}
	for len(p.queue) > 0 && s.starts(e, p.queue[0]) {
		i := p.queue[0]
		p.queue = p.queue[1:]
		s.begin(e, i, s.flights[i].attempt+1)
	}
	if len(p.queue) == 0 && e.active == 0 && len(e.joining) == 0 {
		s.release(e.id)
	}
	s.set(e)
}

// starts reports whether a rollout may start its turn: together only while no call of the turn before is out.
func (s *static) starts(e *engine, i int) bool {
	if s.together && s.parts[e.id].calls > 0 {
		return false
	}
	rows := e.active + len(e.joining)
	return rows < e.rows && (rows == 0 || e.used+float64(s.flights[i].prefix) <= float64(e.tokens))
}

// release dispatches the calls that waited for other turns.
func (s *static) release(e int) {
	held := s.parts[e].held
	s.parts[e].held = nil
	for _, i := range held {
		s.call(e, i)
	}
}

func (s *static) call(e, i int) {
	s.parts[e].calls++
	s.finish(s.engines[e], i)
}
