package stage

import (
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/activities/early"
	"github.com/ropewalk/ropewalk/internal/step/api"
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

// Turnwise has heartbeats report how far an interleaved shard is whose episodes go on turn by turn, as they do of a
// flow. A nil *Turnwise does nothing.
type Turnwise struct {
	began time.Time

	mu     sync.Mutex
	state  api.ShardState
	tokens int64
}

// ByTurns has heartbeats report the stages of a shard.
func (p *Progress) ByTurns() *Turnwise {
	t := &Turnwise{began: time.Now()}
	state := t.now
	p.Flow.Store(&state)
	return t
}

func (t *Turnwise) now() api.ShardState {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.state
	out.TokensPerSec = float64(t.tokens) / max(time.Since(t.began).Seconds(), 1e-3)
	return out
}

// Responded notes all episodes of the shard after a turn, and how many responses and tokens the turn has.
func (t *Turnwise) Responded(episodes []*rollout.Episode, responses int, tokens int64) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.Turns += int64(responses)
	t.tokens += tokens
	t.count(episodes)
}

// Calling notes that the calls of some episodes are in flight.
func (t *Turnwise) Calling(episodes []*rollout.Episode) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.Calls = int64(len(episodes))
}

// Called notes all episodes of the shard after their calls, or none if the calls failed.
func (t *Turnwise) Called(episodes []*rollout.Episode) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.Calls = 0
	if len(episodes) > 0 {
		t.count(episodes)
	}
}

// count counts the episodes. The caller holds the lock.
func (t *Turnwise) count(episodes []*rollout.Episode) {
	t.state.Episodes, t.state.Finished = 0, 0
	for _, e := range rollout.Leaves(episodes) {
		t.state.Episodes++
		if e.Finish != "" {
			t.state.Finished++
		}
	}
}
