package servers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/internal/openai"
	"github.com/ropewalk/ropewalk/policy"
)

// load is what a server has to do, and how it has fared.
type load struct {
	rows, tokens int
	// most is how many rows it is asked for at once: settings.Parallel, halved whenever it has too much to do, and one
	// more for each response after that.
	most     int
	failures int       // in a row
	until    time.Time // it gets no request before
	away     error     // why it is drained; nil = it is in use
}

// dispatcher decides which server is asked for which row: the one with the smallest share of its rows in flight.
type dispatcher struct {
	mu      sync.Mutex
	changed chan struct{} // closed, and replaced, when a place has become free
}

func (d *dispatcher) init() { d.changed = make(chan struct{}) }

func (d *dispatcher) wake() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// settle puts a server into use, or drains it.
func (d *dispatcher) settle(v *server, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v.load = load{most: v.Parallel, away: err, rows: v.load.rows, tokens: v.load.tokens}
	d.wake()
}

// any reports whether a server is in use.
func (d *dispatcher) any(servers []*server) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(servers, func(v *server) bool { return v.load.away == nil })
}

// take waits for a server that has room for a row, and counts the row. It prefers servers that have not failed on it.
// nil means that no server in use can take it at all.
func (d *dispatcher) take(ctx context.Context, servers []*server, cost int, failed map[*server]bool) (*server, error) {
	for {
		d.mu.Lock()
		best, possible, soonest := d.best(servers, cost, failed)
		if best != nil {
			best.load.rows++
			best.load.tokens += cost
		}
		changed := d.changed
		d.mu.Unlock()
		if best != nil || !possible {
			return best, nil
		}
		var clock <-chan time.Time
		var timer *time.Timer
		if !soonest.IsZero() {
			timer = time.NewTimer(time.Until(soonest))
			clock = timer.C
		}
		select {
		case <-changed:
		case <-clock:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

// best returns the server to ask now; nil if there is none yet. possible says whether waiting can help, and soonest
// when a pause ends.
func (d *dispatcher) best(servers []*server, cost int, failed map[*server]bool) (best *server, possible bool,
	soonest time.Time) {
	now := time.Now()
	fresh := slices.ContainsFunc(servers, func(v *server) bool { return v.takes(cost) && !failed[v] })
	for _, v := range servers {
		if !v.takes(cost) || fresh && failed[v] {
			continue
		}
		possible = true
		if v.load.until.After(now) {
			if soonest.IsZero() || v.load.until.Before(soonest) {
				soonest = v.load.until
			}
			continue
		}
		// A row beyond the whole budget goes to a server that has nothing else.
		full := v.load.rows >= v.load.most || v.Tokens > 0 && v.load.rows > 0 && v.load.tokens+cost > v.Tokens
		if !full && (best == nil || v.share() < best.share()) {
			best = v
		}
	}
	return best, possible, soonest
}

// takes reports whether a server is in use and long enough for a row.
func (v *server) takes(cost int) bool { return v.load.away == nil && cost <= v.known.Positions }

func (v *server) share() float64 { return float64(v.load.rows) / float64(v.load.most) }

// done ends a row's request. It says what follows from err for the server; again reports whether the row may be asked
// for again.
func (d *dispatcher) done(ctx context.Context, v *server, cost int, err error) (again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.wake()
	v.load.rows--
	v.load.tokens -= cost
	if ctx.Err() != nil {
		return false
	}
	var fault *Fault
	var known *openai.Error
	switch {
	case err == nil:
		v.load.failures = 0
		v.load.most = min(v.load.most+1, v.Parallel)
		return true
	case errors.Is(err, policy.ErrWrongVersion):
		d.drain(v, err)
		return true
	case errors.As(err, &fault):
		d.failed(v, err)
		return true
	case !errors.As(err, &known):
		return false
	}
	switch known.Kind {
	case openai.Rejected: // the row's own fault
		return false
	case openai.Unreachable, openai.Denied, openai.NotFound, openai.Setup:
		d.drain(v, err)
	case openai.Throttled: // it works, and has too much to do
		v.load.most = max(1, v.load.most/2)
		d.pause(v, known)
	case openai.Failing:
		d.failed(v, err)
		d.pause(v, known)
	default: // Broken, Hung, Malformed, TooLong
		d.failed(v, err)
	}
	return true
}

// failed counts a failure, and drains a server that has nothing but failures.
func (d *dispatcher) failed(v *server, err error) {
	if v.load.failures++; v.load.failures >= v.Attempts {
		d.drain(v, fmt.Errorf("%d failures in a row: %w", v.load.failures, err))
	}
}

func (d *dispatcher) drain(v *server, err error) {
	if v.load.away == nil {
		slog.Warn("a server is drained", "server", v.Name(), "error", err)
		v.load.away = err
	}
}

func (d *dispatcher) pause(v *server, e *openai.Error) {
	if until := time.Now().Add(e.Pause(max(1, v.load.failures))); until.After(v.load.until) {
		v.load.until = until
	}
}
