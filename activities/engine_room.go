package activities

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/activity"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/recipes"
)

// room makes room for ranks of another host's engine: it closes idle engines, and waits for those in use.
func (e *enginePool) room(ctx context.Context, devices int) (release func(), err error) {
	n := e.cost(devices)
	for {
		reserved, wait, err := e.reserve(n)
		if err != nil {
			return nil, err
		}
		if reserved {
			return func() { e.unreserve(n) }, nil
		}
		if wait == nil { // something was closed
			continue
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for devices of this worker's engines: %w", context.Cause(ctx))
		}
	}
}

// reserve takes room, or closes an idle engine, or gives what to wait for.
func (e *enginePool) reserve(n int) (reserved bool, wait <-chan struct{}, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false, nil, errors.New("the worker ends")
	}
	if e.free() >= n {
		e.served += n
		return true, nil, nil
	}
	if h := e.oldest(func(*pooled) bool { return true }); h != nil {
		e.shut(h)
		return false, nil, nil
	}
	return false, e.changed, nil
}

func (e *enginePool) unreserve(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.served -= n
	e.wake()
}

// trainer is the slot that learns by a recipe, until the stage ends.
func (w *draft) trainer(ctx context.Context, scope wire.Scope, r *recipes.Recipe) (*slot, error) {
	if r.Engine.Kind != recipes.EngineTorch {
		return w.deps.Trainer, nil
	}
	return w.engine(ctx, scope, r)
}

// generator is the slot that samples by a recipe. A PyTorch engine both learns and samples: what an update leaves
// resident is what the next rollout samples from.
func (w *draft) generator(ctx context.Context, scope wire.Scope, r *recipes.Recipe) (*slot, error) {
	if r.Engine.Kind != recipes.EngineTorch {
		return w.deps.Rollout, nil
	}
	return w.engine(ctx, scope, r)
}

// engine is the run's PyTorch engine on this host. Work that came here because the engine was here goes elsewhere where it
// is no longer and others have its devices; models on several hosts wait, since wherever else they would want as many.
func (w *draft) engine(ctx context.Context, scope wire.Scope, r *recipes.Recipe) (*slot, error) {
	returned := w.deps.Host != "" && activity.GetInfo(ctx).TaskQueue == wire.HostQueue(w.deps.Host)
	s, leave, err := w.deps.engines.take(ctx, scope.Run, r, returned && r.Engine.Hosts <= 1)
	if errors.Is(err, errElsewhere) {
		return nil, refuse(wire.FailElsewhere, "%v", err)
	}
	if err != nil {
		return nil, err
	}
	w.release = append(w.release, func() { leave(ctx.Err() != nil) })
	w.home = w.deps.Host
	return s, nil
}

// releaseAll gives engines back.
func (w *draft) releaseAll() {
	for _, release := range w.release {
		release()
	}
	w.release = nil
}
