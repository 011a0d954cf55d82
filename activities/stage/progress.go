package stage

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout"
)

// beat is how often a running activity tells the server that its worker is alive.
const beat = 2 * time.Second

// Progress is what an activity's heartbeat shows: done of total.
type Progress struct {
	done, total atomic.Int64
	use         atomic.Pointer[func() *api.DeviceUse] // how the engine uses its devices; nil: no measurement
	capacity    atomic.Pointer[func() api.Capacity]   // of the sampler that generates; nil: none does
	Flow        atomic.Pointer[func() api.ShardState] // how far a shard's episodes are; nil: they have not begun
}

// Follow has heartbeats report how far a flow is, which began at the given time.
func (p *Progress) Follow(f *rollout.Flow, began time.Time) {
	state := func() api.ShardState {
		s := f.State()
		return api.ShardState{Episodes: s.Episodes, Finished: s.Finished, Turns: s.Turns, Calls: s.Calls,
			TokensPerSec: float64(s.Tokens) / max(time.Since(began).Seconds(), 1e-3)}
	}
	p.Flow.Store(&state)
}

// Samples has heartbeats report the capacity of a sampler until the returned function is called.
func (p *Progress) Samples(s policy.Sampler) (stop func()) {
	capacity := func() api.Capacity { return capacityOf(s) }
	p.capacity.Store(&capacity)
	return func() { p.capacity.Store(nil) }
}

// capacityOf is what a sampler has room for.
func capacityOf(s policy.Sampler) api.Capacity {
	out := api.Capacity{Engine: s.Describe().Device}
	if sized, ok := s.(policy.Sized); ok {
		room := sized.Room()
		out.Rows, out.Tokens = room.Rows, room.Tokens
	}
	return out
}

// Details are the details of a heartbeat.
func (p *Progress) Details() []any {
	out := []any{p.done.Load(), p.total.Load()}
	if flow := p.Flow.Load(); flow != nil {
		state := (*flow)()
		out = []any{state.Finished, state.Episodes, state}
	}
	if use := p.use.Load(); use != nil {
		out = append(out, (*use)())
	}
	if capacity := p.capacity.Load(); capacity != nil {
		out = append(out, (*capacity)())
	}
	return out
}

// Set says how much of the work is done.
func (p *Progress) Set(done, total int) {
	p.done.Store(int64(done))
	p.total.Store(int64(total))
}

// Heartbeats reports progress until the returned function is called.
func Heartbeats(ctx context.Context, p *Progress) (stop func()) {
	quit := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				var details []any
				if err := rescue.Do(func() error { details = p.Details(); return nil }); err != nil {
					slog.WarnContext(ctx, "a heartbeat failed", "error", err, "stack", rescue.Stack(err))
				}
				activity.RecordHeartbeat(ctx, details...)
			case <-quit:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { close(quit); <-ended }
}
