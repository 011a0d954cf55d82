package simulate

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/policy/scheduler"
)

// heartbeat is how often engines report their rates, in seconds.
const heartbeat = 10

// stretchTokens is after how many tokens an engine can stop a turn, so that the scheduler decides again. It is a
// compromise: shorter stretches waste less room, and ask the scheduler more often.
const stretchTokens = 512

// scheduled is a world in which the scheduler decides.
type scheduled struct {
	*world
	core   *scheduler.Core
	events []scheduler.Event
	beat   float64
}

// schedule simulates a job under the scheduler's decisions.
func schedule(j *job, settings scheduler.Settings) (*outcome, error) {
	stretch := 0
	if settings.Reserve == scheduler.WorstStretch {
		stretch = stretchTokens
	}
	s := &scheduled{world: newWorld(j, stretch), beat: heartbeat}
	var engines []scheduler.Engine
	for range j.engines {
		engines = append(engines, scheduler.Engine{Capacity: j.engine.tokens, Rows: j.engine.rows,
			Prefill: j.engine.prefill})
	}
	var err error
	if s.core, err = scheduler.New(settings, engines); err != nil {
		return nil, err
	}
	for i := range j.rollouts {
		r := &j.rollouts[i]
		s.tell(scheduler.Event{Kind: scheduler.Submit, Episode: i,
			Spec: scheduler.Spec{Group: r.group, Prompt: r.prompt, Most: r.most, Stretch: s.stretch}})
	}
	if err := s.run(); err != nil {
		return nil, err
	}
	return s.outcome()
}

func (s *scheduled) run() error {
	for s.ended < len(s.flights) {
		if err := s.decide(); err != nil {
			return err
		}
		at := s.next()
		if wake, ok := s.core.Wake(); ok {
			at = min(at, wake)
		}
		if math.IsInf(at, 1) {
			return nil
		}
		s.now = max(min(at, s.beat), s.now)
		s.happen(s.report, s.hear)
		s.rates()
	}
	return nil
}

func (s *scheduled) tell(e scheduler.Event) { s.events = append(s.events, e) }

// decide gives the core the moment's events and carries out what it decides.
func (s *scheduled) decide() error {
	actions, err := s.core.Step(s.now, s.events...)
	s.events = s.events[:0]
	if err != nil {
		return err
	}
	for _, a := range actions {
		switch a.Do {
		case scheduler.Start:
			s.begin(s.engines[a.Engine], a.Episode, a.Attempt)
		case scheduler.Park:
			e := s.engines[a.Engine]
			e.advance(s.now)
			e.keep(a.Episode)
			s.set(e)
		case scheduler.Cancel:
			s.giveUp(a.Episode)
		default:
			return fmt.Errorf("the scheduler decides to %s, which no workload asks for", a)
		}
	}
	return nil
}

// report tells the core which turns of an engine have ended, and which rows it has to drop: those that began last.
func (s *scheduled) report(e *engine) {
	for i, ok := e.ended(); ok; i, ok = e.ended() {
		f := &s.flights[i]
		told := scheduler.Event{Kind: scheduler.Ended, Episode: i, Attempt: f.attempt, Held: f.prefix, Tokens: f.ran}
		if f.after > 0 {
			told.Kind = scheduler.StretchEnded
			s.cut(f)
		} else if s.finish(e, i) {
			told.Kind = scheduler.TurnEnded
		}
		s.tell(told)
	}
	for e.full() {
		i := s.newest(e)[0].rollout
		s.evict(e, i)
		s.tell(scheduler.Event{Kind: scheduler.Evicted, Episode: i, Attempt: s.flights[i].attempt,
			Held: s.flights[i].prefix})
	}
}

// hear tells the core that a call has been answered.
func (s *scheduled) hear(c call) {
	f := &s.flights[c.rollout]
	if f.attempt != c.attempt {
		return
	}
	e := s.engines[f.engine]
	e.advance(s.now)
	cached := e.caches(f)
	s.answer(c.rollout)
	s.tell(scheduler.Event{Kind: scheduler.Returned, Episode: c.rollout, Attempt: f.attempt, Held: f.prefix,
		Cached: cached})
}

// rates tells the core how fast the engines are, if it is time.
func (s *scheduled) rates() {
	if s.beat > s.now {
		return
	}
	s.beat += heartbeat
	for _, e := range s.engines {
		e.advance(s.now)
		if e.active > 0 {
			s.tell(scheduler.Event{Kind: scheduler.Rate, Engine: e.id,
				PerToken: e.seconds(1, e.active, e.read)})
		}
	}
}
