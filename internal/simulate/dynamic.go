package simulate

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/rl/scheduler"
)

// heartbeat is how often engines report their rates, in seconds.
const heartbeat = 10

// Dynamic simulates a job under the scheduler's decisions.
func Dynamic(job *Job, settings scheduler.Settings) (Result, error) {
	d := &dynamic{world: newWorld(job, stretchOf(job, settings)), beat: heartbeat}
	var engines []scheduler.Engine
	for _, m := range job.Engines {
		engines = append(
			engines,
			scheduler.Engine{Capacity: m.Tokens, Rows: m.Rows, Prefill: m.Prefill * max(m.Speed, 0)},
		)
		if m.Speed == 0 {
			engines[len(engines)-1].Prefill = m.Prefill
		}
	}
	core, err := scheduler.New(settings, engines)
	if err != nil {
		return Result{}, fmt.Errorf("simulate: %w", err)
	}
	d.core = core
	if err := d.run(); err != nil {
		return Result{}, err
	}
	d.result.Decisions = core.Stats()
	d.result.Stopped = d.result.Decisions.Stopped
	return d.close(), nil
}

// stretchOf is the stretch that engines are asked for; only one way of reserving room uses it.
func stretchOf(job *Job, s scheduler.Settings) int {
	if s.Reserve == scheduler.WorstStretch || s.Reserve == "" {
		return job.Stretch
	}
	return 0
}

type dynamic struct {
	*world
	core   *scheduler.Core
	events []scheduler.Event
	beat   float64
}

func (d *dynamic) run() error {
	for i := range d.job.Rollouts {
		r := &d.job.Rollouts[i]
		d.tell(scheduler.Event{Kind: scheduler.Submit, Episode: i,
			Spec: scheduler.Spec{Group: r.Group, Class: r.Class, Prompt: r.Prompt, Most: r.Most, Stretch: d.stretch}})
	}
	for {
		if err := d.decide(); err != nil {
			return err
		}
		d.tools.send(d.now)
		at := d.next()
		if wake, ok := d.core.Wake(); ok {
			at = min(at, wake)
		}
		if math.IsInf(at, 1) {
			break
		}
		if d.finished() { // only failures and heartbeats are left
			return nil
		}
		d.now = max(min(at, d.beat), d.now)
		d.collect()
	}
	if !d.finished() {
		return d.stuck()
	}
	return nil
}

func (d *dynamic) finished() bool {
	_, calls := d.tools.next()
	return !calls && len(d.tools.queue) == 0 && d.result.Ended+d.core.Stats().Stopped == len(d.flights)
}

func (d *dynamic) tell(e scheduler.Event) { d.events = append(d.events, e) }

// decide gives the core the moment's events and carries out what it decides.
func (d *dynamic) decide() error {
	actions, err := d.core.Step(d.now, d.events...)
	d.events = d.events[:0]
	if err != nil {
		return err
	}
	for _, a := range actions {
		switch a.Do {
		case scheduler.Start:
			d.begin(d.servers[a.Engine], a.Episode, a.Attempt)
		case scheduler.Park:
			s := d.servers[a.Engine]
			d.touch(s)
			s.keep(a.Episode, &d.flights[a.Episode])
			d.set(s)
		case scheduler.Cancel:
			d.giveUp(d.servers[a.Engine], a.Episode)
		case scheduler.Stop:
			if f := &d.flights[a.Episode]; f.server >= 0 {
				d.giveUp(d.servers[f.server], a.Episode)
			}
		case scheduler.Load:
			d.tell(scheduler.Event{Kind: scheduler.Loaded, Engine: a.Engine, Version: a.Version})
		}
	}
	return nil
}

// collect gathers everything that happens now.
func (d *dynamic) collect() {
	for {
		s, ok := d.awake()
		if !ok {
			break
		}
		d.report(s)
		d.set(s)
	}
	for {
		c, ok := d.tools.answered(d.now)
		if !ok {
			break
		}
		d.hear(c)
	}
	for len(d.fails) > 0 && d.fails[0].At <= d.now {
		x := d.fails[0]
		d.fails = d.fails[1:]
		s := d.strike(x)
		switch x.Event {
		case eventLost:
			d.tell(scheduler.Event{Kind: scheduler.Lost, Engine: s.id})
		case eventJoined:
			d.tell(scheduler.Event{Kind: scheduler.Joined, Engine: s.id})
		}
	}
	if d.beat <= d.now {
		d.beat += heartbeat
		for _, s := range d.servers {
			d.touch(s)
			if s.rows > 0 && s.speed > 0 {
				d.tell(
					scheduler.Event{
						Kind:     scheduler.Rate,
						Engine:   s.id,
						PerToken: s.seconds(1, s.rows, s.read) / s.speed,
					},
				)
			}
		}
	}
}

// report tells the core which turns of an engine have ended, and which rows it has to drop.
func (d *dynamic) report(s *server) {
	for {
		i, ok := s.ended()
		if !ok {
			break
		}
		f := &d.flights[i]
		e := scheduler.Event{Kind: scheduler.Ended, Episode: i, Attempt: f.attempt, Held: f.prefix, Tokens: f.ran}
		if f.after > 0 {
			e.Kind = scheduler.StretchEnded
			d.cut(f)
		} else if d.finish(s, i) {
			e.Kind = scheduler.TurnEnded
		}
		d.tell(e)
	}
	for s.full() {
		newest := row{rollout: -1}
		for _, r := range s.newest() {
			if newest.rollout < 0 || d.flights[r.rollout].begun >= d.flights[newest.rollout].begun {
				newest = r
			}
		}
		d.evict(s, newest.rollout)
		f := &d.flights[newest.rollout]
		d.tell(scheduler.Event{Kind: scheduler.Evicted, Episode: newest.rollout, Attempt: f.attempt, Held: f.prefix})
	}
}

// hear tells the core that a call has been answered.
func (d *dynamic) hear(c call) {
	f := &d.flights[c.rollout]
	if c.verify {
		d.last = d.now
		return
	}
	if f.attempt != c.attempt || f.turn+1 >= len(d.job.Rollouts[c.rollout].Turns) {
		return
	}
	cached := 0
	if f.server >= 0 {
		s := d.servers[f.server]
		d.touch(s)
		cached = s.cached(f)
	}
	d.answer(c.rollout)
	d.tell(scheduler.Event{Kind: scheduler.Returned, Episode: c.rollout, Attempt: f.attempt, Held: f.prefix,
		Cached: cached})
}
