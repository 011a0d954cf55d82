package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/ropewalk/ropewalk/activities/resource"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/gpu/gang"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
)

// ranks serves ranks of other hosts' engines, in the room of one device, until they end with the error served.
type ranks struct {
	enginepool.Torch
	served error
}

func (*ranks) Devices() int { return 1 }

func (r *ranks) Serve(ctx context.Context, _ gang.Invitation, room enginepool.Room) error {
	release, err := room(ctx, 1)
	if err != nil {
		return err
	}
	defer release()
	return r.served
}

func poolOf(t enginepool.Torch) *enginepool.Pool { return enginepool.New(enginepool.Options{Torch: t}) }

// serveRanks runs the activity on a worker.
func serveRanks(t *testing.T, d *stage.Worker) (api.RanksServed, error) {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(stage.Of(ServeRanks{d}.Execute).Activity,
		activity.RegisterOptions{Name: api.ServeRanks})
	out := api.RanksServed{}
	answer, err := env.ExecuteActivity(api.ServeRanks, api.RanksInput{Leader: "a", Address: "127.0.0.1:9", Gang: "g",
		Members: 1})
	if err == nil {
		require.NoError(t, answer.Get(&out))
	}
	return out, err
}

// Another host may take a place that this host cannot fill; if the engine is gone, there is nothing left to do.
func TestServeRanksEnds(t *testing.T) {
	for name, c := range map[string]struct {
		served error
		why    string
		fails  bool // the activity fails and is retried
		kind   string
	}{
		"with the engine": {nil, "the engine has ended", false, ""},
		"after the engine": {fmt.Errorf("%w: its connection ended", gang.ErrGone),
			"the gang is gone: its connection ended", false, ""},
		"on the same host": {fmt.Errorf("%w: host b has a place already", gang.ErrElsewhere),
			"", true, api.FailElsewhere},
		"before the engine": {errors.New("exit status 1"), "", true, ""},
		"on a failed device": {&policy.DeviceError{Kind: "gpu_xid_79", Err: errors.New("fell off the bus")}, "", true,
			"gpu_xid_79"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := serveRanks(t, &stage.Worker{Engines: resource.Engines{Host: "b",
				Pool: poolOf(&ranks{served: c.served})}})
			if !c.fails {
				require.NoError(t, err)
				require.Equal(t, api.RanksServed{Host: "b", Why: c.why}, out)
				return
			}
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.Equal(t, c.kind, app.Type())
			require.False(t, app.NonRetryable())
		})
	}
	_, err := serveRanks(t, &stage.Worker{Engines: resource.Engines{Host: "b", Pool: poolOf(nil)}})
	require.ErrorContains(t, err, "this worker runs no models")
	_, err = serveRanks(t, &stage.Worker{Engines: resource.Engines{Pool: poolOf(&ranks{})}})
	require.ErrorContains(t, err, "no name for its host")
}
