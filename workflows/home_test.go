package workflows

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// queues records on which queue each activity started, in order.
func (f *fakes) queues() *[]string {
	var mu sync.Mutex
	out := &[]string{}
	f.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		mu.Lock()
		defer mu.Unlock()
		*out = append(*out, info.ActivityType.Name+" on "+info.TaskQueue)
	})
	return out
}

// of selects the lines of the named activities.
func of(all []string, names ...string) (out []string) {
	for _, line := range all {
		name, _, _ := strings.Cut(line, " ")
		if slices.Contains(names, name) {
			out = append(out, line)
		}
	}
	return out
}

// elsewhere is the answer of a host that has given the engine's devices to other runs.
func elsewhere() error {
	return temporal.NewNonRetryableApplicationError("others have its devices", api.FailElsewhere, nil)
}

// Stages that train return to the host whose engine did the last one. If that host no longer has the engine, any
// other host takes them.
func TestStagesReturnHome(t *testing.T) {
	plan := api.Plan{Recipe: "tiny", Steps: 1, Shards: 2, MaxTurns: 2}
	plan.Steps, plan.EvaluateEvery = 3, 0
	f := newFakes(t, plan)
	at := f.queues()
	handle(f, api.WarmStart, func(in api.Scope) (api.WarmStarted, error) {
		out, err := f.warmStart(in)
		out.Home = "a"
		return out, err
	})
	updates := 0
	handle(f, api.UpdatePolicy, func(in api.UpdateInput) (api.Updated, error) {
		if updates++; updates == 2 { // step 2, on host a
			return api.Updated{}, elsewhere()
		}
		out, err := f.update(in)
		out.Home = map[int]string{1: "a", 2: "b", 3: "b"}[in.Step]
		return out, err
	})
	f.env.ExecuteWorkflow(TrainRunName, TrainRunInput{Run: "r", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, []string{"WarmStart on gpu", "UpdatePolicy on gpu.a", "UpdatePolicy on gpu.a",
		"UpdatePolicy on gpu", "UpdatePolicy on gpu.b"},
		of(*at, api.WarmStart, api.UpdatePolicy))
	for _, line := range of(*at, api.GenerateRollouts, api.PublishPolicy, api.Evaluate) {
		require.True(t, strings.HasSuffix(line, " on rollout"), line)
	}
	require.Empty(t, of(*at, api.FindHome))
}

// If several hosts share the models, one of them leads: all stages that use the models go to the leader, and the
// workflow asks for it once.
func TestSeveralHostsHaveOneHome(t *testing.T) {
	plan := api.Plan{Recipe: "tiny", Steps: 1, Shards: 2, MaxTurns: 2}
	plan.Steps, plan.EvaluateEvery, plan.Hosts = 1, 0, 2
	require.Greater(t, plan.Shards, 1)
	f := newFakes(t, plan)
	at := f.queues()
	hosts := []string{"a", "b"}
	handle(f, api.FindHome, func(in api.HomeInput) (api.Home, error) {
		require.Equal(t, "r", in.Run)
		host := hosts[0]
		hosts = hosts[1:]
		return api.Home{Host: host}, nil
	})
	var come atomic.Bool
	handle(f, api.GenerateRollouts, func(in api.GenerateInput) (api.Generated, error) {
		if !come.Swap(true) { // the first call finds the host gone
			return api.Generated{}, elsewhere()
		}
		return f.generate(in)
	})
	f.env.ExecuteWorkflow(TrainRunName, TrainRunInput{Run: "r", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, []string{"FindHome on gpu", "FindHome on gpu"}, of(*at, api.FindHome),
		"when the run begins, and when its host is gone")
	require.Empty(t, hosts)
	all := of(*at, api.WarmStart, api.GenerateRollouts, api.UpdatePolicy, api.PublishPolicy, api.Evaluate)
	require.Equal(t, "UpdatePolicy on gpu.b", of(all, api.UpdatePolicy)[0])
	require.Equal(t, []string{"PublishPolicy on gpu.b"}, of(all, api.PublishPolicy))
	require.Equal(t, "Evaluate on gpu.a", of(all, api.Evaluate)[0])
	for _, line := range of(all, api.GenerateRollouts) {
		require.Contains(t, []string{"GenerateRollouts on gpu.a", "GenerateRollouts on gpu.b"}, line)
	}
}

func TestServeRanksHasAllServe(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "tiny", Steps: 1, Shards: 2, MaxTurns: 2})
	at := f.queues()
	tries := 0
	handle(f, api.ServeRanks, func(in api.RanksInput) (api.RanksServed, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if tries++; tries == 1 { // the leader's own host took it
			return api.RanksServed{}, temporal.NewApplicationError("host a has a place already", api.FailElsewhere)
		}
		return api.RanksServed{Host: "b", Why: in.Gang}, nil
	})
	f.env.ExecuteWorkflow(ServeRanks, api.RanksInput{Leader: "a", Address: "10.0.0.1:9", Gang: "g", Members: 2})
	require.NoError(t, f.env.GetWorkflowError())
	var out []api.RanksServed
	require.NoError(t, f.env.GetWorkflowResult(&out))
	require.Equal(t, []api.RanksServed{{Host: "b", Why: "g"}, {Host: "b", Why: "g"}}, out)
	require.Equal(t, 3, tries)
	require.Equal(t, "ServeRanks on gpu", (*at)[0])

	f = newFakes(t, api.Plan{Recipe: "tiny", Steps: 1, Shards: 2, MaxTurns: 2})
	f.env.ExecuteWorkflow(ServeRanks, api.RanksInput{Members: 1})
	require.ErrorContains(t, f.env.GetWorkflowError(), "members, address, gang")
}
