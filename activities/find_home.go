package activities

import (
	"context"

	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/wire"
)

// FindHome names the host that runs a run's models from now on: the one whose worker comes first. Stages that use them go
// there, so that an engine on several hosts is opened once.
type FindHome struct{ *Deps }

// Execute names this host.
func (a FindHome) Execute(ctx context.Context, in wire.HomeInput) (wire.Home, error) {
	recipe, err := a.recipe(ctx, in.Scope)
	if err != nil {
		return wire.Home{}, classify(err)
	}
	if a.Host == "" || a.engines.maker == nil { // another worker may
		return wire.Home{}, temporal.NewApplicationError("this worker polls no queue of its host's own, or runs no models", "")
	}
	if _, err := a.engines.maker.Offer(ctx, recipe); err != nil {
		return wire.Home{}, temporal.NewApplicationError("this worker cannot run the models: "+err.Error(), "")
	}
	return wire.Home{Host: a.Host}, nil
}
