package upkeep

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/failure"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/gpu/gang"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// FindHome names the host that runs a run's models from now on: the host whose worker takes this activity first.
// Stages that use the models go to that host, so that an engine on several hosts is opened only once.
type FindHome struct{ *stage.Worker }

// Execute names this host.
func (a FindHome) Execute(ctx context.Context, e *stage.Env, in api.HomeInput) (api.Home, error) {
	defer stage.Heartbeats(ctx, &stage.Progress{})() // looking for devices may take longer than the heartbeat timeout
	recipe, err := a.Recipes.Recipe(ctx, in.Scope)
	if err != nil {
		return api.Home{}, failure.Classify(err)
	}
	if a.Engines.Host == "" || !a.Engines.Pool.RunsTorch() { // another worker may have both
		return api.Home{},
			temporal.NewApplicationError("this worker polls no queue of its host's own, or runs no models", "")
	}
	if _, err := a.Engines.Pool.Offer(ctx, recipe); err != nil {
		return api.Home{}, temporal.NewApplicationError("this worker cannot run the models: "+err.Error(), "")
	}
	return api.Home{Host: a.Engines.Host}, nil
}

// ServeRanks runs this host's ranks of an engine whose rank 0 is on another host, as long as that engine lives. It
// commits nothing.
type ServeRanks struct{ *stage.Worker }

// Execute returns when the engine has ended. If this host's ranks end while the engine still lives, Execute fails, so
// that another host may take the place.
func (a ServeRanks) Execute(ctx context.Context, e *stage.Env, in api.RanksInput) (api.RanksServed, error) {
	out := api.RanksServed{Host: a.Engines.Host}
	if a.Engines.Host == "" || !a.Engines.Pool.RunsTorch() {
		return out, temporal.NewApplicationError("this worker runs no models, or has no name for its host", "")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer stage.Heartbeats(ctx, &stage.Progress{})()
	go func() {
		select {
		case <-activity.GetWorkerStopChannel(ctx): // the stopping worker waits for its activities
			cancel()
		case <-ctx.Done():
		}
	}()
	err := a.Engines.Pool.Serve(ctx, gang.Invitation{Address: in.Address, ID: in.Gang})
	switch {
	case err == nil:
		out.Why = "the engine has ended"
	case errors.Is(err, gang.ErrGone):
		out.Why = err.Error()
	case errors.Is(err, gang.ErrElsewhere):
		return out, temporal.NewApplicationError(err.Error(), api.FailElsewhere)
	default:
		return out, failure.OwnLimit(ctx, failure.Classify(err))
	}
	return out, nil
}
