package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/scheduler"
)

// errTaken ends an attempt that the scheduler has given up: its row is asked of another server.
var errTaken = errors.New("the row is asked of another server")

// errStuck says that no server in use can take a row.
var errStuck = errors.New("no server in use takes the row")

// beat is how often servers that have not answered are looked at.
const beat = time.Second

// trainingShare is how many times the room of evaluations training gets while both wait.
const trainingShare = 4

// dispatcher tells the scheduler what happens and carries out what it decides: which server is asked for which row. A
// row is an episode of the scheduler, a server an engine.
type dispatcher struct {
	mu      sync.Mutex
	core    *scheduler.Core
	servers []*server
	begun   time.Time
	flights map[int]*flight // rows that have no response yet, by number
	next    int             // number of the next row
	version int             // of the weights: the number of the last Load
	loads   []int           // servers that the scheduler wants to load the version
	wake    *time.Timer     // at the moment at which the scheduler is to be asked again
	beating bool
	places  places
	broken  error // the scheduler has refused an event, which is a fault of this program
}

// flight is a row on its way.
type flight struct {
	row
	number  int
	spec    scheduler.Spec
	place   uint64 // hash of the prefix
	starts  chan attempt
	current attempt       // zero while the row waits
	ended   chan struct{} // closed when err is set
	err     error
}

// attempt is one request for a row.
type attempt struct {
	*server
	number int
	cached int // tokens of the prefix that are in the server's cache
	begun  time.Time
	cancel context.CancelCauseFunc // nil until the request begins
}

// init makes the scheduler. No server is in use before the first Load.
func (d *dispatcher) init(servers []*server) error {
	d.servers, d.begun, d.flights = servers, time.Now(), map[int]*flight{}
	engines := make([]scheduler.Engine, len(servers))
	lost := make([]scheduler.Event, len(servers))
	for i, v := range servers {
		engines[i], lost[i] = v.engine(), scheduler.Event{Kind: scheduler.Lost, Engine: i}
	}
	settings := scheduler.Default()
	settings.Weights[scheduler.Training], settings.Weights[scheduler.Evaluation] = trainingShare, 1
	var err error
	if d.core, err = scheduler.New(settings, engines); err == nil {
		_, err = d.core.Step(0, lost...)
	}
	return err
}

// unlimited is the capacity of a server whose KV cache is not known.
const unlimited = math.MaxInt32

// engine describes a server to the scheduler.
func (v *server) engine() scheduler.Engine {
	e := scheduler.Engine{Capacity: cmp.Or(v.Tokens, v.known.Tokens, unlimited), Rows: v.Parallel,
		Longest: v.known.Positions}
	if v.known.Rows > 0 {
		e.Rows = min(e.Rows, v.known.Rows)
	}
	return e
}

// submit hands rows over to the scheduler.
func (d *dispatcher) submit(rows []row, evaluation bool) []*flight {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]*flight, len(rows))
	var events []scheduler.Event
	for i, r := range rows {
		f := &flight{row: r, starts: make(chan attempt, 1), ended: make(chan struct{})}
		if evaluation {
			f.spec.Class = scheduler.Evaluation
		}
		f.spec.Home, f.spec.Cached, f.place = d.places.find(r.prefix)
		f.spec.Group = int(f.place >> 1) // rows of one prompt
		out[i] = f
		events = append(events, d.enter(f)...)
	}
	d.step(events...)
	return out
}

// enter gives a row a number and its room; the event submits it. A row beyond the capacity of every server in use gets
// the largest for itself.
func (d *dispatcher) enter(f *flight) []scheduler.Event {
	most := 0
	for _, v := range d.servers {
		if v.load.up && f.cost() <= v.longest() {
			most = max(most, v.engine().Capacity)
		}
	}
	if most == 0 || d.broken != nil {
		f.fail(errors.Join(errStuck, d.broken))
		return nil
	}
	f.spec.Most = min(f.cost(), most)
	f.spec.Prompt = min(len(f.prefix), f.spec.Most)
	f.spec.Cached = min(f.spec.Cached, f.spec.Prompt)
	f.number = d.next
	d.next++
	d.flights[f.number] = f
	return []scheduler.Event{{Kind: scheduler.Submit, Episode: f.number, Spec: f.spec}}
}

// longest is the longest sequence of a server, in tokens.
func (v *server) longest() int { return cmp.Or(v.known.Positions, math.MaxInt) }

// fail ends a row that waits.
func (f *flight) fail(err error) {
	f.err = err
	close(f.ended)
}

// step tells the scheduler what has happened and carries out what it decides. Rows on servers that are lost are taken
// off, and rows that no server can take any more end.
func (d *dispatcher) step(events ...scheduler.Event) {
	if d.broken != nil {
		return
	}
	lost := false
	for _, e := range events {
		if e.Kind == scheduler.Lost {
			lost = true
			for _, f := range d.flights {
				if f.current.server == d.servers[e.Engine] {
					f.take()
				}
			}
		}
	}
	actions, err := d.core.Step(time.Since(d.begun).Seconds(), events...)
	if err != nil {
		d.broken = err
		slog.Error("the scheduler of servers fails", "error", err)
		for _, f := range d.flights {
			d.forget(f)
			f.fail(err)
		}
		return
	}
	for _, a := range actions {
		switch a.Do {
		case scheduler.Start:
			f := d.flights[a.Episode]
			f.current = attempt{server: d.servers[a.Engine], number: a.Attempt, cached: a.Cached, begun: time.Now()}
			f.starts <- f.current
		case scheduler.Cancel:
			d.flights[a.Episode].take()
		case scheduler.Load:
			d.loads = append(d.loads, a.Engine)
		}
	}
	if lost {
		d.step(d.refit()...)
		return
	}
	d.schedule()
}

// take gives a row's attempt up.
func (f *flight) take() {
	select {
	case <-f.starts: // nothing was asked yet
	default:
	}
	if f.current.cancel != nil {
		f.current.cancel(errTaken)
	}
	f.current = attempt{}
}

// refit looks at the rows that wait after a server was lost: one that no server in use could hold is submitted again,
// or ends.
func (d *dispatcher) refit() (events []scheduler.Event) {
	for _, n := range slices.Sorted(maps.Keys(d.flights)) { // in the order in which they came
		f := d.flights[n]
		if f.current.server != nil || slices.ContainsFunc(d.servers, func(v *server) bool {
			return v.load.up && f.cost() <= v.longest() && f.spec.Most <= v.engine().Capacity
		}) {
			continue
		}
		events = append(events, scheduler.Event{Kind: scheduler.Withdrawn, Episode: n})
		delete(d.flights, n)
		events = append(events, d.enter(f)...)
	}
	return events
}

// schedule asks the scheduler again when it wants to be asked, and looks at the servers while rows are on their way.
func (d *dispatcher) schedule() {
	if d.wake != nil {
		d.wake.Stop()
		d.wake = nil
	}
	if at, ok := d.core.Wake(); ok {
		in := time.Duration(max(at-time.Since(d.begun).Seconds(), 0)*float64(time.Second)) + time.Millisecond
		d.wake = time.AfterFunc(in, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.step()
		})
	}
	if len(d.flights) > 0 && !d.beating {
		d.beating = true
		time.AfterFunc(beat, d.look)
	}
}

// await waits until a server is to be asked for a row. Its context ends when the scheduler gives the attempt up.
func (d *dispatcher) await(ctx context.Context, f *flight) (attempt, context.Context, error) {
	select {
	case <-ctx.Done():
		return attempt{}, nil, context.Cause(ctx)
	case <-f.ended:
		return attempt{}, nil, f.err
	case a := <-f.starts:
		d.mu.Lock()
		defer d.mu.Unlock()
		of, cancel := context.WithCancelCause(ctx)
		a.cancel = cancel
		if f.current.number != a.number {
			cancel(errTaken)
		} else {
			f.current.cancel = cancel
		}
		return a, of, nil
	}
}

// leave takes a row out.
func (d *dispatcher) leave(f *flight) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.flights[f.number] != f { // it has left already
		return
	}
	d.forget(f)
	d.step(scheduler.Event{Kind: scheduler.Withdrawn, Episode: f.number})
}

func (d *dispatcher) forget(f *flight) {
	f.take()
	delete(d.flights, f.number)
}

// held is how many tokens the scheduler is told that a row holds.
func (f *flight) held(tokens int) int { return min(len(f.prefix)+tokens, f.spec.Most) }

// use puts a server into use with the version of the last publish, or drains it.
func (d *dispatcher) use(v *server, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := v.load.up
	v.load = load{most: v.engine().Rows, up: err == nil, away: err, paces: v.load.paces}
	switch {
	case err != nil:
		d.step(scheduler.Event{Kind: scheduler.Lost, Engine: v.index})
	case was:
		d.step(append(d.limit(v), scheduler.Event{Kind: scheduler.Loaded, Engine: v.index, Version: d.version})...)
	default:
		as := v.engine()
		d.step(scheduler.Event{Kind: scheduler.Joined, Engine: v.index, Version: d.version, As: &as})
	}
}

// publish begins a version: what servers have cached is void. The servers are empty, because no row is on its way.
func (d *dispatcher) publish() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.version++
	d.loads = d.loads[:0]
	d.places = places{}
	d.step(scheduler.Event{Kind: scheduler.Publish, Version: d.version})
	for _, v := range d.servers {
		if d.broken == nil && v.load.up && !slices.Contains(d.loads, v.index) {
			return fmt.Errorf("server %s: it is not empty", v.Name())
		}
	}
	return d.broken
}

// any reports whether a server is in use.
func (d *dispatcher) any() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.servers, func(v *server) bool { return v.load.up })
}

// Room is that of the servers in use, together.
func (s *Sampler) Room() (room policy.Room) {
	s.dispatch.mu.Lock()
	defer s.dispatch.mu.Unlock()
	limited := true
	for _, v := range s.servers {
		if v.load.up {
			e := v.engine()
			room.Rows += e.Rows
			room.Tokens += e.Capacity
			limited = limited && e.Capacity < unlimited
		}
	}
	if !limited {
		room.Tokens = 0
	}
	return room
}

// Stats counts what the scheduler has decided since the sampler was opened.
func (s *Sampler) Stats() scheduler.Stats {
	s.dispatch.mu.Lock()
	defer s.dispatch.mu.Unlock()
	return s.dispatch.core.Stats()
}
