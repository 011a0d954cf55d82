package simulate

import (
	"fmt"
	"math"
)

// world is what both drivers share: engines, tool calls and the clock.
type world struct {
	job       *job
	now       float64
	engines   []*engine
	stretch   int // tokens after which engines stop a turn; 0 = never
	flights   []flight
	calls     queue[call]
	count     int     // of calls so far
	ended     int     // rollouts
	evictions int     // rows that an engine dropped because its cache was full
	last      float64 // when the last rollout ended
}

// call is a tool call that runs.
type call struct {
	at               float64 // when it is answered
	order            int
	rollout, attempt int
}

func newWorld(j *job, stretch int) *world {
	w := &world{job: j, stretch: stretch, flights: make([]flight, len(j.rollouts)),
		calls: queue[call]{less: func(a, b *call) bool { return a.at < b.at || a.at == b.at && a.order < b.order }}}
	for i := range j.engines {
		w.engines = append(w.engines, newEngine(i, j.engine, w.flights))
	}
	for i := range w.flights {
		r := &j.rollouts[i]
		w.flights[i] = flight{prefix: r.prompt, left: int(r.turns[0].tokens), engine: -1}
		w.cut(&w.flights[i])
	}
	return w
}

// cut divides the tokens that a turn still lacks into the next stretch and the rest.
func (w *world) cut(f *flight) {
	f.left, f.after = f.left+f.after, 0
	if w.stretch > 0 && f.left > w.stretch {
		f.left, f.after = w.stretch, f.left-w.stretch
	}
}

// next is the next moment at which something happens in the world.
func (w *world) next() float64 {
	at := math.Inf(1)
	for _, e := range w.engines {
		at = min(at, e.wakes)
	}
	if len(w.calls.items) > 0 {
		at = min(at, w.calls.items[0].at)
	}
	return at
}

// happen tells report of the engines whose moment has come, and hear of calls that are answered.
func (w *world) happen(report func(*engine), hear func(call)) {
	for _, e := range w.engines {
		if e.wakes <= w.now {
			e.advance(w.now)
			e.join()
			report(e)
			w.set(e)
		}
	}
	for len(w.calls.items) > 0 && w.calls.items[0].at <= w.now {
		hear(w.calls.pop())
	}
}

// set plans an engine's next moment after a change.
func (w *world) set(e *engine) {
	e.wakes = e.next()
	if e.wakes <= w.now { // by rounding: a step forward, however small
		e.wakes = math.Nextafter(w.now, math.Inf(1))
	}
}

// begin starts a flight's turn.
func (w *world) begin(e *engine, i, attempt int) {
	if f := &w.flights[i]; f.engine >= 0 && f.engine != e.id {
		w.giveUp(i)
	}
	e.advance(w.now)
	e.start(i, attempt)
	e.join()
	w.set(e)
}

// giveUp takes a flight off its engine, if it is on one.
func (w *world) giveUp(i int) {
	f := &w.flights[i]
	if f.engine < 0 {
		return
	}
	e := w.engines[f.engine]
	e.advance(w.now)
	e.drop(f)
	w.set(e)
}

// finish notes that a flight's turn has ended, and dispatches its call. It reports whether another turn follows.
func (w *world) finish(e *engine, i int) (more bool) {
	f, r := &w.flights[i], &w.job.rollouts[i]
	if f.turn+1 < len(r.turns) {
		w.count++
		w.calls.push(call{w.now + float64(r.turns[f.turn].tool), w.count, i, f.attempt})
		return true
	}
	e.drop(f)
	f.turn++
	w.ended++
	w.last = w.now
	return false
}

// answer takes a flight to its next turn.
func (w *world) answer(i int) {
	f, r := &w.flights[i], &w.job.rollouts[i]
	f.prefix += int(r.turns[f.turn].result)
	f.turn++
	f.left = int(r.turns[f.turn].tokens)
	w.cut(f)
}

// outcome is what a simulation has measured.
type outcome struct {
	makespan  float64 // seconds
	evictions int
}

// outcome is what has been measured, or an error if not all rollouts have ended.
func (w *world) outcome() (*outcome, error) {
	if w.ended < len(w.flights) {
		return nil, fmt.Errorf("after %.1f s nothing happens any more, and %d of %d rollouts have not ended", w.now,
			len(w.flights)-w.ended, len(w.flights))
	}
	return &outcome{makespan: w.last, evictions: w.evictions}, nil
}
