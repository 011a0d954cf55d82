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

	"github.com/ropewalk/ropewalk/activities/wire"
)

// queues notes on which queue each activity began, in order.
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

// of are those of some activities.
func of(all []string, names ...string) (out []string) {
	for _, line := range all {
		name, _, _ := strings.Cut(line, " ")
		if slices.Contains(names, name) {
			out = append(out, line)
		}
	}
	return out
}

// elsewhere is a host's answer that has given the engine's devices to others.
func elsewhere() error {
	return temporal.NewNonRetryableApplicationError("others have its devices", wire.FailElsewhere, nil)
}

// Stages that learn go back to the host whose engine did the last; one that has it no more is left for any other.
func TestStagesReturnHome(t *testing.T) {
	plan := wire.Plan{Recipe: "tiny", Steps: 1, Shards: 2, MaxTurns: 2}
	plan.Steps, plan.EvaluateEvery = 3, 0
	f := newFakes(t, plan)
	at := f.queues()
	handle(f, wire.WarmStart, func(in wire.Scope) (wire.WarmStarted, error) {
		out, err := f.warmStart(in)
		out.Home = "a"
		return out, err
	})
	updates := 0
	handle(f, wire.UpdatePolicy, func(in wire.UpdateInput) (wire.Updated, error) {
		if updates++; updates == 2 { // step 2, on host a
			return wire.Updated{}, elsewhere()
		}
		out, err := f.update(in)
		out.Home = map[int]string{1: "a", 2: "b", 3: "b"}[in.Step]
		return out, err
	})
	f.env.ExecuteWorkflow(TrainRunName, TrainRunInput{Run: "r", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, []string{"WarmStart on gpu", "UpdatePolicy on gpu.a", "UpdatePolicy on gpu.a", "UpdatePolicy on gpu", "UpdatePolicy on gpu.b"},
		of(*at, wire.WarmStart, wire.UpdatePolicy))
	for _, line := range of(*at, wire.GenerateRollouts, wire.PublishPolicy, wire.Evaluate) {
		require.True(t, strings.HasSuffix(line, " on rollout"), line)
	}
	require.Empty(t, of(*at, wire.FindHome))
}

// Where several hosts share the models, one of them leads: whatever uses them goes to it, and it is asked for once.
func TestSeveralHostsHaveOneHome(t *testing.T) {
	plan := wire.Plan{Recipe: "tiny", Steps: 1, Shards: 2, MaxTurns: 2}
	plan.Steps, plan.EvaluateEvery, plan.Hosts = 1, 0, 2
	require.Greater(t, plan.Shards, 1)
	f := newFakes(t, plan)
	at := f.queues()
	hosts := []string{"a", "b"}
	handle(f, wire.FindHome, func(in wire.HomeInput) (wire.Home, error) {
		require.Equal(t, "r", in.Run)
		host := hosts[0]
		hosts = hosts[1:]
		return wire.Home{Host: host}, nil
	})
	var come atomic.Bool
	handle(f, wire.GenerateRollouts, func(in wire.GenerateInput) (wire.Generated, error) {
		if !come.Swap(true) { // the first to come there finds it gone
			return wire.Generated{}, elsewhere()
		}
		return f.generate(in)
	})
	f.env.ExecuteWorkflow(TrainRunName, TrainRunInput{Run: "r", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, []string{"FindHome on gpu", "FindHome on gpu"}, of(*at, wire.FindHome), "when the run begins, and when its host is gone")
	require.Empty(t, hosts)
	all := of(*at, wire.WarmStart, wire.GenerateRollouts, wire.UpdatePolicy, wire.PublishPolicy, wire.Evaluate)
	require.Equal(t, "UpdatePolicy on gpu.b", of(all, wire.UpdatePolicy)[0])
	require.Equal(t, []string{"PublishPolicy on gpu.b"}, of(all, wire.PublishPolicy))
	require.Equal(t, "Evaluate on gpu.a", of(all, wire.Evaluate)[0])
	for _, line := range of(all, wire.GenerateRollouts) {
		require.Contains(t, []string{"GenerateRollouts on gpu.a", "GenerateRollouts on gpu.b"}, line)
	}
}

func TestServeRanksHasAllServe(t *testing.T) {
	f := newFakes(t, wire.Plan{Recipe: "tiny", Steps: 1, Shards: 2, MaxTurns: 2})
	f.env.RegisterWorkflow(ServeRanks)
	at := f.queues()
	tries := 0
	handle(f, wire.ServeRanks, func(in wire.RanksInput) (wire.RanksServed, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if tries++; tries == 1 { // the leader's own host took it
			return wire.RanksServed{}, temporal.NewApplicationError("host a has a place already", wire.FailElsewhere)
		}
		return wire.RanksServed{Host: "b", Why: in.Gang}, nil
	})
	f.env.ExecuteWorkflow(ServeRanks, wire.RanksInput{Leader: "a", Address: "10.0.0.1:9", Gang: "g", Members: 2})
	require.NoError(t, f.env.GetWorkflowError())
	var out []wire.RanksServed
	require.NoError(t, f.env.GetWorkflowResult(&out))
	require.Equal(t, []wire.RanksServed{{Host: "b", Why: "g"}, {Host: "b", Why: "g"}}, out)
	require.Equal(t, 3, tries)
	require.Equal(t, "ServeRanks on gpu", (*at)[0])

	f = newFakes(t, wire.Plan{Recipe: "tiny", Steps: 1, Shards: 2, MaxTurns: 2})
	f.env.RegisterWorkflow(ServeRanks)
	f.env.ExecuteWorkflow(ServeRanks, wire.RanksInput{Members: 1})
	require.ErrorContains(t, f.env.GetWorkflowError(), "members, address, gang")
}
