package activities

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/policy"
)

// serveRanks runs the activity on a worker.
func serveRanks(t *testing.T, d *Deps) (wire.RanksServed, error) {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(ServeRanks{d}.Execute, activity.RegisterOptions{Name: wire.ServeRanks})
	out := wire.RanksServed{}
	answer, err := env.ExecuteActivity(wire.ServeRanks, wire.RanksInput{Leader: "a", Address: "127.0.0.1:9", Gang: "g", Members: 1})
	if err == nil {
		require.NoError(t, answer.Get(&out))
	}
	return out, err
}

// A place that this host cannot have is another's to take; of an engine that is gone nothing is left to do.
func TestServeRanksEnds(t *testing.T) {
	for name, c := range map[string]struct {
		served error
		why    string
		fails  bool // and is tried again
		kind   string
	}{
		"with the engine":    {nil, "the engine has ended", false, ""},
		"after the engine":   {fmt.Errorf("%w: its connection ended", ErrGangGone), "the engine is gone: its connection ended", false, ""},
		"on the same host":   {fmt.Errorf("%w: host b has a place already", ErrNoPlace), "", true, wire.FailElsewhere},
		"before the engine":  {errors.New("exit status 1"), "", true, ""},
		"on a failed device": {&policy.DeviceError{Kind: "gpu_xid_79", Err: errors.New("fell off the bus")}, "", true, "gpu_xid_79"},
	} {
		t.Run(name, func(t *testing.T) {
			e := poolOf(&torchMaker{devices: 1, served: c.served})
			out, err := serveRanks(t, &Deps{Host: "b", engines: e})
			require.Zero(t, e.served, "the room is given back")
			if !c.fails {
				require.NoError(t, err)
				require.Equal(t, wire.RanksServed{Host: "b", Why: c.why}, out)
				return
			}
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.Equal(t, c.kind, app.Type())
			require.False(t, app.NonRetryable())
		})
	}
	_, err := serveRanks(t, &Deps{Host: "b", engines: poolOf(nil)})
	require.ErrorContains(t, err, "this worker runs no models")
	_, err = serveRanks(t, &Deps{engines: poolOf(&torchMaker{})})
	require.ErrorContains(t, err, "no name for its host")
}
