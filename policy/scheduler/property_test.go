package scheduler

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// play of random episodes: what a driver would know about each of them.
type life struct {
	spec    Spec
	turns   int // still to come, with this one
	held    int
	attempt int
	engine  int  // where its turn runs; −1 = nowhere
	calling bool // a tool runs
	over    bool
}

// ride drives a core with random events at whole numbers of seconds, so that many are simultaneous.
type ride struct {
	t         *testing.T
	rng       *rand.Rand
	settings  Settings
	core      *Core
	engines   []Engine
	up        []bool
	limits    []int // of rows; 0 = none
	before    []int // episodes that had room a second ago: a lower limit takes it from none of them
	lives     []life
	ends      []int
	withdrawn int
	next      []Event
	version   int
	shuffle   *rand.Rand // of simultaneous events; nil keeps their order
	log       []string
}

func randomSettings(rng *rand.Rand) Settings {
	s := Settings{Reserve: []Reserve{WorstStretch, Worst, Expected}[rng.IntN(3)], Park: float64(rng.IntN(4)),
		Hold: rng.IntN(3) == 0, Busy: 1 + rng.IntN(9)}
	if rng.IntN(2) == 0 {
		s.Length = 30
	}
	s.Weights[Evaluation] = 0.25 + rng.Float64()
	return s
}

func newRide(t *testing.T, seed uint64, shuffle *rand.Rand) *ride {
	rng := rand.New(rand.NewPCG(seed, 1))
	r := &ride{t: t, rng: rng, settings: randomSettings(rng), shuffle: shuffle}
	for range 1 + rng.IntN(5) {
		r.engines = append(r.engines, Engine{Capacity: 100 + rng.IntN(200), Rows: rng.IntN(6), Prefill: 20})
		r.up = append(r.up, true)
		r.limits, r.before = append(r.limits, r.engines[len(r.engines)-1].Rows), append(r.before, 0)
	}
	core, err := New(r.settings, r.engines)
	if err != nil {
		t.Fatal(err)
	}
	r.core = core
	n := 1 + rng.IntN(40)
	r.ends = make([]int, n)
	for i := range n {
		s := Spec{Group: i / 4, Class: Class(rng.IntN(2)), Prompt: rng.IntN(10), Most: 40 + rng.IntN(60)}
		if rng.IntN(3) > 0 {
			s.Stretch = 8
		}
		r.lives = append(r.lives, life{spec: s, turns: 1 + rng.IntN(4), held: s.Prompt, engine: -1})
		r.next = append(r.next, Event{Kind: Submit, Episode: i, Spec: s})
	}
	return r
}

// run plays to the end and returns every decision.
func (r *ride) run() []string {
	for now := 0; now < 5000; now++ {
		if r.shuffle != nil {
			r.shuffle.Shuffle(len(r.next), func(i, j int) { r.next[i], r.next[j] = r.next[j], r.next[i] })
		}
		actions, err := r.core.Step(float64(now), r.next...)
		if err != nil {
			r.t.Fatalf("at %d: %v (%+v)", now, err, r.settings)
		}
		r.next = nil
		for _, a := range actions {
			r.log = append(r.log, fmt.Sprintf("%d %s", now, a))
			r.obey(a)
		}
		r.check(now)
		if open, _ := r.core.Open(); open == 0 {
			return r.log
		}
		r.happen(now)
	}
	open, idle := r.core.Open()
	r.t.Fatalf("%d episodes have not ended, %d of them wait: %+v, %+v", open, idle, r.settings, r.core.Stats())
	return nil
}

func (r *ride) obey(a Action) {
	switch a.Do {
	case Start:
		l := &r.lives[a.Episode]
		if l.over || l.engine >= 0 || l.calling || !r.up[a.Engine] {
			r.t.Fatalf("%s: %+v", a, l)
		}
		if l.attempt >= a.Attempt {
			r.t.Fatalf("%s after attempt %d", a, l.attempt)
		}
		l.engine, l.attempt = a.Engine, a.Attempt
	case Cancel:
		l := &r.lives[a.Episode]
		l.engine = -1
		r.next = append(r.next, Event{Kind: Ended, Episode: a.Episode, Attempt: l.attempt, Held: l.held}) // too late
	case Load:
		r.next = append(r.next, Event{Kind: Loaded, Engine: a.Engine, Version: a.Version})
	}
}

// happen makes up what happens in the next second.
func (r *ride) happen(now int) {
	for i := range r.lives {
		if l := &r.lives[i]; !l.over && l.engine < 0 && !l.calling && r.rng.IntN(400) == 0 {
			l.over = true
			r.ends[i]++
			r.withdrawn++
			r.next = append(r.next, Event{Kind: Withdrawn, Episode: i})
		}
		if l := &r.lives[i]; !l.over && (l.engine >= 0 || l.calling) && r.rng.IntN(4) == 0 {
			r.advance(i, l)
		}
	}
	for e := range r.engines {
		switch {
		case r.up[e] && now < 400 && r.rng.IntN(60) == 0 && slices.Index(r.up, true) != e:
			r.up[e] = false
			r.next = append(r.next, Event{Kind: Lost, Engine: e})
			for i := range r.lives {
				if r.lives[i].engine == e {
					r.lives[i].engine = -1
				}
			}
		case !r.up[e] && (now >= 400 || r.rng.IntN(20) == 0):
			r.up[e] = true
			joined := Event{Kind: Joined, Engine: e, Version: r.version}
			if r.rng.IntN(2) == 0 {
				as := r.engines[e]
				as.Rows = r.rng.IntN(6)
				r.engines[e], joined.As = as, &as
			}
			r.limits[e] = r.engines[e].Rows
			r.next = append(r.next, joined)
		case r.up[e] && now < 400 && r.rng.IntN(30) == 0 || r.up[e] && now == 400:
			r.limits[e] = 1 + r.rng.IntN(6)
			r.next = append(r.next, Event{Kind: Limit, Engine: e, Rows: r.limits[e]})
		case r.up[e] && r.rng.IntN(10) == 0:
			r.next = append(r.next, Event{Kind: Rate, Engine: e, PerToken: 0.01 + r.rng.Float64()*float64(1+e*e)})
		}
	}
	if r.rng.IntN(80) == 0 {
		r.version++
		r.next = append(r.next, Event{Kind: Publish, Version: r.version})
	}
}

// advance makes up how an episode goes on: a tool answers, or a stretch, a turn or the episode ends.
func (r *ride) advance(i int, l *life) {
	room := l.spec.Most - l.held
	event := Event{Episode: i, Attempt: l.attempt}
	if l.calling {
		l.calling = false
		l.held += min(r.rng.IntN(5), max(room-1, 0))
		event.Kind, event.Held, event.Cached = Returned, l.held, r.rng.IntN(l.held+1)
		r.next = append(r.next, event)
		return
	}
	generated := min(1+r.rng.IntN(8), room)
	l.held += generated
	l.engine = -1
	event.Held, event.Tokens = l.held, generated
	switch {
	case r.rng.IntN(8) == 0:
		event.Kind, event.Tokens = Failed, 0
	case l.turns > 1 && room > 10 && r.settings.Reserve == Expected && r.rng.IntN(8) == 0:
		event.Kind, event.Tokens = Evicted, 0
	case l.turns > 1 && room > 10 && l.spec.Stretch > 0 && r.rng.IntN(2) == 0:
		event.Kind = StretchEnded
	case l.turns > 1 && room > 10:
		l.turns--
		l.calling = true
		event.Kind = TurnEnded
	default:
		l.over = true
		event.Kind = Ended
		r.ends[i]++
	}
	r.next = append(r.next, event)
}

// check holds the core to its promises.
func (r *ride) check(now int) {
	rows, held := make([]int, len(r.engines)), make([]int, len(r.engines))
	for _, l := range r.lives {
		if l.engine >= 0 {
			rows[l.engine]++
			held[l.engine] += l.held
		}
	}
	for e, reserved := range r.core.Reserved() {
		most := max(reserved, held[e])
		if reserved < 0 || r.settings.Reserve != Expected && most > r.engines[e].Capacity {
			r.t.Fatalf("at %d: %d tokens are reserved and %d held on engine %d of %d (%+v)", now, reserved, held[e], e,
				r.engines[e].Capacity, r.settings)
		}
		with := r.core.engines[e].rows
		if limit := r.limits[e]; limit > 0 && with > max(limit, r.before[e]) || rows[e] > with {
			r.t.Fatalf("at %d: %d turns run and %d episodes have room on engine %d, which has %d rows", now, rows[e],
				with, e, limit)
		}
		r.before[e] = with
	}
}

// Whatever happens, every episode ends exactly once, no engine is given more than it holds except where only the
// expected length has room, and the decisions follow from the events alone, in whatever order simultaneous ones are
// reported. Everything that is counted happens.
func TestEverythingEndsOnce(t *testing.T) {
	counted := map[string]int64{}
	for seed := range uint64(400) {
		r := newRide(t, seed, nil)
		log := r.run()
		for i, n := range r.ends {
			if n != 1 {
				t.Fatalf("seed %d: episode %d ended %d times", seed, i, n)
			}
		}
		s := r.core.Stats()
		if s.Ended < len(r.ends)-r.withdrawn {
			t.Fatalf("seed %d: %+v", seed, s)
		}
		for f, count := range reflect.ValueOf(s).Fields() {
			counted[f.Name] += count.Int()
		}
		if again := newRide(t, seed, nil).run(); !slices.Equal(again, log) {
			t.Fatalf("seed %d: the same events are decided otherwise", seed)
		}
		shuffled := newRide(t, seed, rand.New(rand.NewPCG(seed, 2)))
		if other := shuffled.run(); !slices.Equal(other, log) {
			at := 0
			for at < len(other) && at < len(log) && other[at] == log[at] {
				at++
			}
			t.Fatalf("seed %d: another order of simultaneous events is decided otherwise at decision %d", seed, at)
		}
	}
	for name, n := range counted {
		if n == 0 {
			t.Errorf("%s never happened", name)
		}
	}
}

func TestBadEventsAndSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		settings Settings
		engines  []Engine
	}{
		"reserve": {Settings{Reserve: "x"}, []Engine{{Capacity: 1}}},
		"park":    {Settings{Park: -1}, []Engine{{Capacity: 1}}}, "no engines": {Settings{}, nil},
		"margin": {Settings{Margin: -1}, []Engine{{Capacity: 1}}}, "capacity": {Settings{}, []Engine{{}}},
		"straggler": {Settings{Straggler: 0.5}, []Engine{{Capacity: 1}}},
		"weights":   {Settings{Weights: [classes]float64{-1, 1}}, []Engine{{Capacity: 1}}},
	} {
		if _, err := New(tt.settings, tt.engines); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, events := range map[string][]Event{
		"twice":    {{Kind: Submit, Episode: 1, Spec: Spec{Most: 5}}, {Kind: Submit, Episode: 1, Spec: Spec{Most: 5}}},
		"large":    {{Kind: Submit, Spec: Spec{Most: 51}}},
		"empty":    {{Kind: Submit, Spec: Spec{}}},
		"prompt":   {{Kind: Submit, Spec: Spec{Prompt: 6, Most: 5}}},
		"class":    {{Kind: Submit, Spec: Spec{Class: 7, Most: 5}}},
		"unknown":  {{Kind: Ended, Episode: 9}},
		"engine":   {{Kind: Lost, Engine: 3}},
		"up":       {{Kind: Joined}},
		"unasked":  {{Kind: Loaded}},
		"rate":     {{Kind: Rate, PerToken: -1}},
		"backward": {{Kind: Publish, Version: -1}},
	} {
		c, err := New(Settings{}, []Engine{{Capacity: 50}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Step(1, events...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	c, err := New(Settings{}, []Engine{{Capacity: 50}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Step(2); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Step(1); err == nil {
		t.Error("time goes back without an error")
	}
	_, err = c.Step(3, Event{Kind: Submit, Spec: Spec{Most: 10}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Step(4, Event{Kind: TurnEnded, Attempt: 1, Tokens: 11, Held: 11}); err == nil {
		t.Error("an episode grows beyond its most without an error")
	}
}
