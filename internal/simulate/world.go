package simulate

import (
	"fmt"
	"math"
	"slices"
)

// world is what both drivers share: engines, tools, failures and the clock.
type world struct {
	job     *Job
	now     float64
	servers []*server
	stretch int // tokens after which engines stop a turn; 0 = never
	alarms  *alarms
	flights []flight
	tools   *tools
	fails   []Failure // still to come
	usage   *usage
	result  Result
	last    float64 // when the last rollout ended or was verified
}

func newWorld(job *Job, stretch int) *world {
	w := &world{job: job, stretch: stretch, flights: make([]flight, len(job.Rollouts)), tools: newTools(job.Tools),
		usage: newUsage(len(job.Engines)), alarms: newAlarms(len(job.Engines), math.Inf(1)), fails: job.Failures}
	for i, m := range job.Engines {
		w.servers = append(w.servers, newServer(i, m, w.usage, w.flights))
	}
	for i := range w.flights {
		r := &job.Rollouts[i]
		w.flights[i] = flight{prefix: r.Prompt, left: int(r.Turns[0].Tokens), server: -1}
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
	_, at := w.alarms.first()
	if t, ok := w.tools.next(); ok {
		at = min(at, t)
	}
	if len(w.fails) > 0 {
		at = min(at, w.fails[0].At)
	}
	return at
}

// awake returns an engine whose moment has come, with time passed on it.
func (w *world) awake() (*server, bool) {
	i, at := w.alarms.first()
	if at > w.now {
		return nil, false
	}
	s := w.servers[i]
	s.advance(w.now)
	s.join()
	return s, true
}

// touch lets an engine's time pass before its state is changed.
func (w *world) touch(s *server) { s.advance(w.now) }

// set plans an engine's next moment after a change.
func (w *world) set(s *server) {
	at := s.next()
	if at <= w.now && !math.IsInf(at, 1) { // by rounding: a step forward, however small
		at = math.Nextafter(w.now, math.Inf(1))
	}
	w.alarms.set(s.id, at)
}

// begin starts a flight's turn.
func (w *world) begin(s *server, i, attempt int) {
	f := &w.flights[i]
	if f.server >= 0 && f.server != s.id {
		home := w.servers[f.server]
		w.touch(home)
		home.drop(f)
		w.set(home)
	}
	w.touch(s)
	fresh := 0 // tokens that no engine has computed yet
	if f.turn == 0 && f.attempt == 0 {
		fresh = f.prefix
	} else if f.turn > 0 && f.left+f.after == int(w.job.Rollouts[i].Turns[f.turn].Tokens) {
		fresh = int(w.job.Rollouts[i].Turns[f.turn-1].Result)
	}
	w.result.Computed += max(s.start(i, f, attempt)-fresh, 0)
	s.join()
	w.set(s)
}

// finish notes that a flight's turn has ended, and dispatches its call. more reports whether another turn follows.
func (w *world) finish(s *server, i int) (more bool) {
	f, r := &w.flights[i], &w.job.Rollouts[i]
	t := r.Turns[f.turn]
	if f.turn+1 < len(r.Turns) {
		w.tools.dispatch(w.now, call{rollout: i, attempt: f.attempt, tool: float64(t.Tool)})
		return true
	}
	s.drop(f)
	f.turn++
	w.result.Ended++
	w.last = w.now
	if t.Tool > 0 {
		w.tools.dispatch(w.now, call{rollout: i, tool: float64(t.Tool), verify: true})
	}
	return false
}

// answer takes a flight to its next turn.
func (w *world) answer(i int) {
	f, r := &w.flights[i], &w.job.Rollouts[i]
	f.prefix += int(r.Turns[f.turn].Result)
	f.turn++
	f.left = int(r.Turns[f.turn].Tokens)
	w.cut(f)
}

// giveUp stops a flight's running turn, whose tokens are lost.
func (w *world) giveUp(s *server, i int) {
	w.touch(s)
	w.result.Repeated += s.drop(&w.flights[i])
	w.set(s)
}

// evict drops a row whose tokens are kept as text.
func (w *world) evict(s *server, i int) {
	f := &w.flights[i]
	n := s.drop(f)
	f.prefix += n
	f.left -= n
	w.result.Evictions++
}

// strike applies a failure to its engine.
func (w *world) strike(x Failure) *server {
	s := w.servers[x.Engine]
	w.touch(s)
	speed := max(s.Model.Speed, 0)
	if speed == 0 {
		speed = 1
	}
	switch x.Event {
	case eventLost:
		for _, r := range s.newest() {
			w.result.Repeated += s.drop(&w.flights[r.rollout])
		}
		s.run(0)
	case eventJoined:
		s.run(speed)
	case eventSlow:
		if s.speed > 0 {
			s.run(speed / x.Factor)
		}
	}
	w.set(s)
	return s
}

// close computes what is measured at the end.
func (w *world) close() Result {
	r := w.result
	r.Makespan = w.last
	if r.Makespan > 0 {
		for _, busy := range w.usage.busy {
			r.Idle += 1 - busy/r.Makespan
		}
		r.Idle /= float64(len(w.servers))
	}
	slices.Sort(w.tools.latency)
	if r.Calls = len(w.tools.latency); r.Calls > 0 {
		for _, x := range w.tools.latency {
			r.Latency += float64(x)
		}
		r.Latency /= float64(r.Calls)
		r.Late = float64(w.tools.latency[min(r.Calls*99/100, r.Calls-1)])
	}
	var ended, stopped, tokens, lost float64
	for i := range w.flights {
		if n := float64(w.job.Rollouts[i].held()); w.flights[i].turn == len(w.job.Rollouts[i].Turns) {
			ended, tokens = ended+1, tokens+n
		} else {
			stopped, lost = stopped+1, lost+n
		}
	}
	if r.EndedTokens = tokens / max(ended, 1); stopped > 0 {
		r.StoppedTokens = lost / stopped
	}
	r.usage = w.usage
	return r
}

// stuck is the error of a simulation in which nothing can happen any more.
func (w *world) stuck() error {
	return fmt.Errorf("simulate: after %.1f s nothing happens any more, and %d of %d rollouts have not ended", w.now,
		len(w.flights)-w.result.Ended, len(w.flights))
}
