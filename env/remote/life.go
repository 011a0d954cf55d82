package remote

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// life follows a program of the other side: whether it has ended, and how many sessions it has. A program that stays
// without sessions for the idle time ends: starting it again for each episode would take longer than most episodes.
type life struct {
	idle time.Duration
	stop func() // ends the program; it is called once

	mu   sync.Mutex
	dead error       // why the program ended; nil while it runs
	open int         // sessions
	rest *time.Timer // ends the program; nil while it has sessions
}

// errIdle is the reason that ends a program without sessions.
var errIdle = errors.New("it has no sessions")

// count changes the number of sessions.
func (l *life) count(by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open += by
	if l.rest != nil {
		l.rest.Stop()
		l.rest = nil
	}
	if l.open == 0 && l.dead == nil {
		l.rest = time.AfterFunc(l.idle, l.endIdle)
	}
}

// endIdle ends the program if it still has no sessions.
func (l *life) endIdle() {
	l.mu.Lock()
	idle := l.open == 0 && l.dead == nil
	if idle {
		l.dead = errIdle // under the lock, so that no session opens in between
	}
	l.mu.Unlock()
	if idle {
		l.stop()
	}
}

// failure returns why the program ended; nil while it runs.
func (l *life) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// kill ends the program. The first reason stays.
func (l *life) kill(why error) {
	l.mu.Lock()
	first := l.dead == nil
	if first {
		l.dead = why
	}
	l.mu.Unlock()
	if first {
		l.stop()
	}
}

// program is what a keeper starts.
type program interface {
	count(by int)
	failure() error
}

// keeper holds one program of the other side. It starts the program when a session is wanted, and again after the
// program has ended. Ends in a row make it wait longer before the next start.
type keeper[P program] struct {
	what  string // the program, for people
	start func() (P, error)

	mu    sync.Mutex
	now   P
	held  bool // there is a now
	ends  int  // since the last session that opened
	after time.Time
}

// The wait before a start grows from firstWait by doubling to lastWait.
const (
	firstWait = time.Second
	lastWait  = time.Minute
)

// running returns the program, which it starts if there is none, and counts a session of it.
func (k *keeper[P]) running(now time.Time) (P, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var none P
	if k.held {
		k.now.count(1) // before the look at its end, so that it does not end as idle in between
		err := k.now.failure()
		if err == nil {
			return k.now, nil
		}
		k.now, k.held = none, false
		if !errors.Is(err, errIdle) && !errors.Is(err, errEdited) {
			k.after = now
			if k.ends > 0 {
				k.after = now.Add(min(lastWait, firstWait<<min(k.ends-1, 10)))
			}
			k.ends++
		}
	}
	if now.Before(k.after) {
		return none, fmt.Errorf("%s died %d times in a row; the next start is at %s", k.what, k.ends,
			k.after.UTC().Format(time.TimeOnly))
	}
	made, err := k.start()
	if err != nil {
		return none, err
	}
	made.count(1)
	k.now, k.held = made, true
	return made, nil
}

// alive reports whether a program runs.
func (k *keeper[P]) alive() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held && k.now.failure() == nil
}

// opened notes that a session has opened.
func (k *keeper[P]) opened() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ends = 0
}
