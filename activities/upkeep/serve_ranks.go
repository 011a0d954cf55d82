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
