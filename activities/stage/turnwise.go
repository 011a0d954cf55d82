package stage

import (
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/rollout"
)

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
