package upkeep

import (
	"context"

	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/failure"
	"github.com/ropewalk/ropewalk/activities/stage"
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
