package workflows

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// logprobs fakes the stage logprobs and lists the calls of this stage and the inputs of the stages that read its
// outputs.
func (f *fakes) logprobs() (asked *[]string, batches *[]api.StageInput, heads *[][]api.StageRef) {
	asked, batches, heads = &[]string{}, &[]api.StageInput{}, f.heads()
	handle(f, api.ComputeTokenOutputs, func(in api.TokenOutputsInput) (api.TokenOutputs, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		*asked = append(*asked, fmt.Sprintf("step %d shard %d: %s, %s, %s", in.Step, in.Shard, in.Assembled.Key,
			in.Selection.Key, in.Policy.Digest))
		return f.tokenOutputs(in)
	})
	handle(f, api.ComputeAdvantages, func(in api.StageInput) (api.Advantages, error) {
		*batches = append(*batches, in)
		return api.Advantages{Done: api.Done{Manifest: ref("batch", in.Step)}, Rows: 6}, nil
	})
	handle(f, api.UpdatePolicy, func(in api.UpdateInput) (api.Updated, error) {
		out, err := f.update(in)
		out.ReferenceKL = new(0.125)
		return out, err
	})
	return asked, batches, heads
}

func (f *fakes) tokenOutputs(in api.TokenOutputsInput) (api.TokenOutputs, error) {
	start := time.Date(2026, 1, 1, 0, 0, in.Shard, 0, time.UTC).UnixMicro()
	return api.TokenOutputs{Done: api.Done{
		Manifest: ref("outputs", in.Step, in.Shard), Timing: api.Timing{Stage: schema.StageLogprobs, Start: start,
			End: start + 500_000},
	}}, nil
}

// heads lists the stages that each step's head names.
func (f *fakes) heads() *[][]api.StageRef {
	heads := &[][]api.StageRef{}
	handle(f, api.PublishPolicy, func(in api.PublishInput) (api.Published, error) {
		*heads = append(*heads, in.Stages)
		return api.Published{Done: api.Done{Manifest: ref("publish", in.Step)}}, nil
	})
	return heads
}

func stageNames(refs []api.StageRef) []string {
	var out []string
	for _, r := range refs {
		out = append(out, r.Stage)
	}
	return out
}

func TestLogprobsRunBetweenResampleAndAdvantage(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 2, MaxTurns: 3, Needs: stages.Needs{Logprobs: true}})
	asked, batches, heads := f.logprobs()
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.ElementsMatch(t, []string{
		"step 1 shard 0: assembled[1 0], selection[1], warm", "step 1 shard 1: assembled[1 1], selection[1], warm",
	}, *asked)
	require.Equal(t, ref(schema.StageLogprobs, 1, 0), (*batches)[0].Made.One(schema.StageLogprobs))
	names := stageNames((*heads)[0])
	require.Equal(t, []string{schema.StageResample, schema.StageLogprobs, schema.StageAdvantage, schema.StageUpdate},
		names[len(names)-4:])
	p := progressOf(t, f)
	text := p.Markdown()
	require.Contains(t, text, "| grad | KL to reference |\n")
	require.Contains(t, text, " | 0.12500 |\n")
	require.Contains(t, text, "| resample | 0.00 |\n| logprobs | 1.00 |\n| advantage | 0.00 |\n",
		"two shards of half a second, one after the other")
}

func TestLogprobsAreLeftOutWhereTheRecipeNeedsNothing(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 2, MaxTurns: 1})
	heads := f.heads()
	handle(f, api.ComputeAdvantages, func(in api.StageInput) (api.Advantages, error) {
		require.Equal(t, schema.Ref{}, in.Made.One(schema.StageLogprobs))
		return api.Advantages{Done: api.Done{Manifest: ref("batch", in.Step)}, Rows: 6}, nil
	})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.NotContains(t, stageNames((*heads)[0]), schema.StageLogprobs)
	p := progressOf(t, f)
	require.NotContains(t, p.Markdown(), "logprobs")
	require.NotContains(t, p.Markdown(), "reference")
}

// A shard whose outputs cannot be computed parks the run. The selection already keeps its trajectories, so they
// cannot be skipped; a retry continues.
func TestFailedLogprobsPark(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 3, MaxTurns: 1, Needs: stages.Needs{Logprobs: true}})
	f.logprobs()
	left := broken(f, api.ComputeTokenOutputs, 1, func(in api.TokenOutputsInput) bool { return in.Shard == 1 },
		f.tokenOutputs)
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
		Stage: schema.StageLogprobs, Shard: 1, Turn: -1, Activity: api.ComputeTokenOutputs, Kind: "disk_full",
		Text: "ComputeTokenOutputs: no room on the device",
	}, parked.Parked.Failures[0])
	require.ErrorContains(t, skip.rejected, "the step's selection keeps trajectories of the shard")
	require.Equal(t, 2*time.Hour, limits[api.ComputeTokenOutputs][len(limits[api.ComputeTokenOutputs])-1])
	require.Equal(t, 1, f.calls[api.UpdatePolicy])
}
