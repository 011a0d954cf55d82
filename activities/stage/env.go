package stage

import (
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/activities/early"
	"github.com/ropewalk/ropewalk/rollout"
)

// Env is what the stages of one activity share. The zero Env is that of a stage that is an activity of its own.
//
// It is open as long as the activity or one of its stages runs: a stage that has exceeded its limit may still use what
// the activity has left.
type Env struct {
	Progress *Progress       // of the activity; nil: the stage has its own
	Flow     *Flow           // works ahead of the stages of a shard; nil: nothing does
	Verdicts *early.Verdicts // gets verdicts ahead of their stages; nil: nothing does
	Turnwise *Turnwise       // has heartbeats report the turns of a shard without a flow

	mu      sync.Mutex
	users   int
	closers []func()
	Done    bool // the activity has succeeded
}

// Flow takes the episodes of a shard to their ends while the stages commit their turns.
type Flow struct {
	*rollout.Flow
	// Committed says how many turns, and results of turns, of all episodes are committed.
	Committed func(turns, results int)
}

// Use keeps the environment open until end is called. The last end closes it, the latest closer first.
func (e *Env) Use() (end func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.users++
	return func() {
		for _, closer := range slices.Backward(e.unuse()) {
			closer()
		}
	}
}

// unuse returns the closers if no one uses the environment any more.
func (e *Env) unuse() (closers []func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.users--; e.users == 0 {
		closers, e.closers = e.closers, nil
	}
	return closers
}

// AtEnd calls closer when the environment closes. Someone uses it now.
func (e *Env) AtEnd(closer func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closers = append(e.closers, closer)
}
