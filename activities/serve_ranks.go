package activities

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/wire"
)

// ServeRanks runs this host's ranks of an engine whose rank 0 is on another host, for as long as that engine lives. It commits
// nothing.
type ServeRanks struct{ *Deps }

// Execute returns when the engine has ended. Where the engine is still there and this host's ranks are not, it fails, so
// that another host may take the place.
func (a ServeRanks) Execute(ctx context.Context, in wire.RanksInput) (wire.RanksServed, error) {
	out := wire.RanksServed{Host: a.Host}
	if a.Host == "" || a.engines.maker == nil {
		return out, temporal.NewApplicationError("this worker runs no models, or has no name for its host", "")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer heartbeats(ctx, &progress{})()
	go func() {
		select {
		case <-activity.GetWorkerStopChannel(ctx): // the worker waits for its activities
			cancel()
		case <-ctx.Done():
		}
	}()
	err := a.engines.maker.Serve(ctx, in, a.engines.room)
	switch {
	case err == nil:
		out.Why = "the engine has ended"
	case errors.Is(err, ErrGangGone):
		out.Why = err.Error()
	case errors.Is(err, ErrNoPlace):
		return out, temporal.NewApplicationError(err.Error(), wire.FailElsewhere)
	default:
		return out, ownLimit(ctx, classify(err))
	}
	return out, nil
}
