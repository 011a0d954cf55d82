package stage

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"

	"github.com/ropewalk/ropewalk/activities/failure"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
)

// Trainer returns the engine that trains for a recipe, until the stage ends.
func (w *Draft) Trainer(ctx context.Context, scope api.Scope, r *recipes.Recipe) (*enginepool.Trainer, error) {
	t, release, err := w.Worker.Engines.Pool.Trainer(ctx, scope.Run, r, w.elsewhere(ctx, r))
	return t, w.leased(ctx, r, release, err)
}

// Sampler returns the engine that generates for a recipe, until the stage ends.
func (w *Draft) Sampler(ctx context.Context, scope api.Scope, r *recipes.Recipe) (*enginepool.Sampler, error) {
	s, release, err := w.Worker.Engines.Pool.Sampler(ctx, scope.Run, r, w.elsewhere(ctx, r))
	if len(r.Engine.Servers) > 0 { // they are as near to any host
		return s, err
	}
	return s, w.leased(ctx, r, release, err)
}

// elsewhere reports whether another host could do the work as well. Work that was sent here because of the engine goes
// to another host if the engine is gone and other runs have its devices. An engine on several hosts waits instead,
// because it would need as many devices anywhere else.
func (w *Draft) elsewhere(ctx context.Context, r *recipes.Recipe) bool {
	if !r.Engine.Declaration().Devices || w.Worker.Engines.Host == "" || r.Engine.Hosts > 1 {
		return false
	}
	return activity.GetInfo(ctx).TaskQueue == api.HostQueue(w.Worker.Engines.Host)
}

// leased arranges for the release of a lease at the end of the stage, or says why there is none.
func (w *Draft) leased(ctx context.Context, r *recipes.Recipe, release enginepool.Release, err error) error {
	if errors.Is(err, enginepool.ErrElsewhere) {
		return failure.Permanent(api.FailElsewhere, err)
	}
	if err != nil {
		return err
	}
	w.release = append(w.release, func() { release(ctx.Err() != nil) })
	if r.Engine.Declaration().Devices {
		w.home = w.Worker.Engines.Host
	}
	return nil
}

// releaseAll ends all leases.
func (w *Draft) releaseAll() {
	for _, release := range w.release {
		release()
	}
	w.release = nil
}

// Version is the committed model that a reference to a policy names.
func Version(ref api.PolicyRef) enginepool.Version {
	return enginepool.Version{Manifest: ref.Manifest, Digest: ref.Digest}
}

// Evaluating is a recipe for an engine that only evaluates: it needs nothing that training needs, such as new weights.
func Evaluating(r *recipes.Recipe) *recipes.Recipe {
	out := *r
	out.Steps = 0
	return &out
}
