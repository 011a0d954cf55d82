package servers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ropewalk/ropewalk/internal/openai"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/scheduler"
)

// load is how a server has fared.
type load struct {
	// most is how many rows it is asked for at once: settings.Parallel, halved whenever it has too much to do, and one
	// more for each response after that.
	most     int
	failures int       // in a row
	until    time.Time // it gets no request before
	up       bool      // it is in use
	away     error     // why it is drained
	paces
}

// answered notes the response of an attempt, which brought so many tokens of it.
func (d *dispatcher) answered(f *flight, a attempt, tokens int, whole response) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.current.number != a.number { // another one was asked meanwhile
		return
	}
	v := a.server
	f.current = attempt{}
	v.load.failures = 0
	events := []scheduler.Event{{Kind: scheduler.Ended, Episode: f.number, Attempt: a.number, Tokens: tokens,
		Held: f.held(len(whole.tokens))}}
	if most := min(v.load.most+1, v.engine().Rows); most != v.load.most {
		v.load.most = most
		events = append(events, d.limit(v)...)
	}
	if v.known.Capabilities.PrefixCache {
		d.places.put(v.index, f.place, whole.tokens)
	}
	v.load.learn(float64(len(f.prefix)-a.cached), float64(tokens), time.Since(a.begun).Seconds())
	if prefill := v.load.prefill(); prefill > 0 {
		events = append(events, scheduler.Event{Kind: scheduler.Rate, Engine: v.index, Prefill: prefill})
	}
	d.step(events...)
}

// failed notes that an attempt has failed, and what follows for the server. begun is how many tokens of the response
// have come in all. again reports whether the row may be asked for again.
func (d *dispatcher) failed(ctx context.Context, f *flight, a attempt, begun int, err error) (again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	if f.current.number != a.number { // it was given up
		return true
	}
	v := a.server
	failed := scheduler.Event{Kind: scheduler.Failed, Episode: f.number, Attempt: a.number, Held: f.held(begun)}
	var events []scheduler.Event
	var fault *Fault
	var known *openai.Error
	switch {
	case errors.Is(err, policy.ErrWrongVersion):
		events = d.drain(v, err)
	case errors.As(err, &fault):
		events = d.count(v, err)
	case !errors.As(err, &known) || known.Kind == openai.Rejected: // the row's own fault
		return false
	default:
		switch known.Kind {
		case openai.Unreachable, openai.Denied, openai.NotFound, openai.Setup:
			events = d.drain(v, err)
		case openai.Throttled: // it works, and has too much to do
			v.load.most = max(1, v.load.most/2)
			failed.Kind = scheduler.Evicted
			events = d.pause(v, known)
		case openai.Failing:
			if events = d.count(v, err); events == nil {
				events = d.pause(v, known)
			}
		default: // Broken, Hung, Malformed, TooLong
			events = d.count(v, err)
		}
	}
	f.current = attempt{}
	d.step(append([]scheduler.Event{failed}, events...)...)
	return true
}

// count counts a failure, and drains a server that has nothing but failures.
func (d *dispatcher) count(v *server, err error) []scheduler.Event {
	if v.load.failures++; v.load.failures >= v.Attempts {
		return d.drain(v, fmt.Errorf("%d failures in a row: %w", v.load.failures, err))
	}
	return nil
}

// drain takes a server out of use.
func (d *dispatcher) drain(v *server, err error) []scheduler.Event {
	if !v.load.up {
		return nil
	}
	slog.Warn("a server is drained", "server", v.Name(), "error", err)
	v.load.up, v.load.away = false, err
	return []scheduler.Event{{Kind: scheduler.Lost, Engine: v.index}}
}

// drainAll takes all servers out of use.
func (d *dispatcher) drainAll(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var events []scheduler.Event
	for _, v := range d.servers {
		events = append(events, d.drain(v, err)...)
	}
	d.step(events...)
}

// pause asks a server for nothing for a while.
func (d *dispatcher) pause(v *server, e *openai.Error) []scheduler.Event {
	if until := time.Now().Add(e.Pause(max(1, v.load.failures))); until.After(v.load.until) {
		v.load.until = until
		time.AfterFunc(time.Until(until), func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.step(d.limit(v)...)
		})
	}
	return d.limit(v)
}

// limit says how many rows a server takes at once now.
func (d *dispatcher) limit(v *server) []scheduler.Event {
	if !v.load.up {
		return nil
	}
	e := scheduler.Event{Kind: scheduler.Limit, Engine: v.index, Rows: v.load.most}
	if v.load.until.After(time.Now()) {
		e.Rows = 0
	}
	return []scheduler.Event{e}
}

// slower is how many times its usual time for a token a server has to take at least before it is reported.
const slower = 2

// look reports servers that are slower than was known: a row that has not ended has at most as many tokens as its
// budget allows.
func (d *dispatcher) look() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.beating = false; len(d.flights) == 0 {
		return
	}
	slowest := make([]float64, len(d.servers))
	for _, f := range d.flights {
		v, passed := f.current.server, time.Since(f.current.begun)
		if v == nil || passed < beat {
			continue
		}
		slowest[v.index] = max(slowest[v.index], v.load.least(float64(len(f.prefix)-f.current.cached),
			float64(f.maxTokens), passed.Seconds()))
	}
	var events []scheduler.Event
	for i, v := range d.servers {
		if v.load.up && slowest[i] > slower*v.load.perToken {
			events = append(events, scheduler.Event{Kind: scheduler.Rate, Engine: i, PerToken: slowest[i]})
		}
	}
	d.step(events...)
}
