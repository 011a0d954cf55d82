package workflows

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/schema"
)

// forwards answers the stage forward and lists what was asked of it and of the stages that it feeds.
func (f *fakes) forwards() (asked *[]string, batches *[]wire.AdvantageInput, heads *[][]wire.StageRef) {
	asked, batches, heads = &[]string{}, &[]wire.AdvantageInput{}, f.heads()
	handle(f, wire.ComputeTokenOutputs, func(in wire.ForwardInput) (wire.Forwarded, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		*asked = append(*asked, fmt.Sprintf("step %d shard %d: %d turns, %s, %s", in.Step, in.Shard, len(in.Turns), in.Selection.Key, in.Policy.Digest))
		return f.forward(in)
	})
	handle(f, wire.ComputeAdvantages, func(in wire.AdvantageInput) (wire.Advantages, error) {
		*batches = append(*batches, in)
		return wire.Advantages{Done: wire.Done{Manifest: ref("batch", in.Step)}, Rows: 6}, nil
	})
	handle(f, wire.UpdatePolicy, func(in wire.UpdateInput) (wire.Updated, error) {
		out, err := f.update(in)
		out.ReferenceKL = new(0.125)
		return out, err
	})
	return asked, batches, heads
}

func (f *fakes) forward(in wire.ForwardInput) (wire.Forwarded, error) {
	start := time.Date(2026, 1, 1, 0, 0, in.Shard, 0, time.UTC).UnixMicro()
	return wire.Forwarded{Done: wire.Done{
		Manifest: ref("outputs", in.Step, in.Shard), Timing: wire.Timing{Stage: wire.StageForward, Start: start, End: start + 500_000},
	}}, nil
}

// heads lists the stages that each step's head names.
func (f *fakes) heads() *[][]wire.StageRef {
	heads := &[][]wire.StageRef{}
	handle(f, wire.PublishPolicy, func(in wire.PublishInput) (wire.Published, error) {
		*heads = append(*heads, in.Stages)
		return wire.Published{Done: wire.Done{Manifest: ref("publish", in.Step)}}, nil
	})
	return heads
}

func stageNames(refs []wire.StageRef) []string {
	var out []string
	for _, r := range refs {
		out = append(out, r.Stage)
	}
	return out
}

func TestForwardRunsBetweenResampleAndAdvantage(t *testing.T) {
	f := newFakes(t, wire.Plan{Recipe: "r", Steps: 1, Shards: 2, MaxTurns: 3, Forward: true})
	asked, batches, heads := f.forwards()
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.ElementsMatch(t, []string{
		"step 1 shard 0: 2 turns, selection[1], warm", "step 1 shard 1: 3 turns, selection[1], warm",
	}, *asked)
	require.Equal(t, ref(wire.StageForward, 1, 0), (*batches)[0].Outputs)
	names := stageNames((*heads)[0])
	require.Equal(t, []string{wire.StageResample, wire.StageForward, wire.StageAdvantage, wire.StageUpdate}, names[len(names)-4:])
	p := progressOf(t, f)
	text := p.Markdown()
	require.Contains(t, text, "| seconds | KL to reference |\n")
	require.Contains(t, text, " | 0.12500 |\n")
	require.Contains(t, text, "| resample | forward | advantage |")
	require.Contains(t, text, "| 0.00 | 1.00 | 0.00 |", "two shards of half a second, one after the other")
}

func TestForwardIsLeftOutWhereTheRecipeNeedsNothing(t *testing.T) {
	f := newFakes(t, wire.Plan{Recipe: "r", Steps: 1, Shards: 2, MaxTurns: 1})
	heads := f.heads()
	handle(f, wire.ComputeAdvantages, func(in wire.AdvantageInput) (wire.Advantages, error) {
		require.Equal(t, schema.Ref{}, in.Outputs)
		return wire.Advantages{Done: wire.Done{Manifest: ref("batch", in.Step)}, Rows: 6}, nil
	})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.NotContains(t, stageNames((*heads)[0]), wire.StageForward)
	p := progressOf(t, f)
	require.NotContains(t, p.Markdown(), "forward")
	require.NotContains(t, p.Markdown(), "reference")
}

// A shard whose outputs cannot be computed parks the run; its trajectories are kept by the selection
// already, so they cannot be skipped, and a retry goes on.
func TestAFailedForwardParks(t *testing.T) {
	f := newFakes(t, wire.Plan{Recipe: "r", Steps: 1, Shards: 3, MaxTurns: 1, Forward: true})
	f.forwards()
	left := broken(f, wire.ComputeTokenOutputs, 1, func(in wire.ForwardInput) bool { return in.Shard == 1 }, f.forward)
	var parked Progress
	f.env.RegisterDelayedCallback(func() { parked = progressOf(t, f) }, time.Minute)
	skip := f.after(time.Hour, UpdateSkip)
	f.after(2*time.Hour, UpdateRetry, RetryInput{TimeoutSeconds: 7200})
	limits := map[string][]time.Duration{}
	f.env.SetOnActivityStartedListener(f.noteLimits(limits))
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Zero(t, *left)
	require.NotNil(t, parked.Parked)
	require.Equal(t, StageFailure{
		Stage: wire.StageForward, Shard: 1, Turn: -1, Activity: wire.ComputeTokenOutputs, Kind: "disk_full", Text: "ComputeTokenOutputs: no room on the device",
	}, parked.Parked.Failures[0])
	require.ErrorContains(t, skip.rejected, "the step's selection keeps trajectories of the shard")
	require.Equal(t, 2*time.Hour, limits[wire.ComputeTokenOutputs][len(limits[wire.ComputeTokenOutputs])-1])
	require.Equal(t, 1, f.calls[wire.UpdatePolicy])
}
