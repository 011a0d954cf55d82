package stack

import (
	"errors"
	"fmt"
	"time"
)

// errFromOutside says that something else ended the process (a signal such as SIGKILL, or a request to stop), so that
// its end says nothing about whether the program works.
var errFromOutside = errors.New("ended from outside")

// endedError is the end of a process. It wraps errFromOutside if that applies, but its text does not say so.
type endedError struct {
	error
	outside bool
}

func (e *endedError) Unwrap() error        { return e.error }
func (e *endedError) Is(target error) bool { return e.outside && target == errFromOutside }

// restarts decides how long to wait before a server is started again, and when to give it up. A server is given up for
// faults of its program: several failures in a row, each before or soon after it was healthy. If a server is ended from
// outside, it is restarted however often that happens, unless it has not been healthy at all for a long time.
type restarts struct {
	tuning  tuning
	backoff time.Duration
	own     int       // failures of the program itself in a row
	tries   int       // ends in a row of either kind
	last    time.Time // when the server was last healthy, or first started
}

func newRestarts(t tuning, now time.Time) *restarts {
	return &restarts{tuning: t, backoff: t.backoff, last: now}
}

// after records the end of a process that was healthy since a time (zero: never). It returns the pause before the next
// start, or why there will be none.
func (r *restarts) after(healthy time.Time, fromOutside bool, now time.Time) (pause time.Duration, why string) {
	if !healthy.IsZero() {
		r.last = now
	}
	if !healthy.IsZero() && now.Sub(healthy) >= r.tuning.quickDeath {
		r.backoff, r.own, r.tries = r.tuning.backoff, 0, 0
	}
	r.tries++
	if !fromOutside {
		r.own++
	}
	switch {
	case r.own >= r.tuning.maxQuick:
		return 0, fmt.Sprintf("after %d tries in a row", r.tries)
	case now.Sub(r.last) > r.tuning.patience:
		return 0, fmt.Sprintf("after %d tries, none of which was ready, in %s", r.tries, r.tuning.patience)
	}
	pause = r.backoff
	r.backoff = min(2*r.backoff, 16*r.tuning.backoff)
	return pause, ""
}
