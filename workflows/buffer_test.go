package workflows

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// buffers fakes the stage buffer, which is full at every third step. It lists the inputs of the stage, the inputs of
// the update, and the stages that the heads name.
func (f *fakes) buffers() (asked *[]api.StageInput, updates *[]api.UpdateInput, heads *[][]api.StageRef) {
	asked, updates, heads = &[]api.StageInput{}, &[]api.UpdateInput{}, f.heads()
	handle(f, api.UpdateReplayBuffer, func(in api.StageInput) (api.Buffered, error) {
		*asked = append(*asked, in)
		return f.buffer(in)
	})
	handle(f, api.UpdatePolicy, func(in api.UpdateInput) (api.Updated, error) {
		*updates = append(*updates, in)
		out, err := f.update(in)
		out.Gamma = new(0.25)
		return out, err
	})
	return asked, updates, heads
}

func (f *fakes) buffer(in api.StageInput) (api.Buffered, error) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	out := api.Buffered{
		Done: api.Done{Manifest: ref("buffer", in.Step), Timing: api.Timing{Stage: schema.StageBuffer, Start: start,
			End: start + 250_000}},
		Size: 7 * in.Step, Stored: 7, P50: 0.5,
	}
	if in.Step%3 == 0 {
		out.Size, out.Stored, out.Consumed, out.Imitated, out.Recalibrated = 0, 0, true, 11, 0.375
	}
	return out, nil
}

func TestEveryStepGoesOnWithTheBufferOfTheOneBefore(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 3, Shards: 1, MaxTurns: 1, Needs: stages.Needs{ReplayBuffer: true}})
	asked, updates, heads := f.buffers()
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Len(t, *asked, 3)
	require.Equal(t, schema.Ref{}, (*asked)[0].Before)
	for i, in := range *asked {
		step := i + 1
		require.Equal(t, ref("batch", step), in.Made.One(schema.StageAdvantage))
		require.Equal(t, schema.StageReward, in.Made.One(schema.StageReward).Key[:len(schema.StageReward)])
		require.Equal(t, ref("buffer", step), (*updates)[i].Buffer)
		if i > 0 {
			require.Equal(t, ref("buffer", step-1), in.Before)
		}
		names := stageNames((*heads)[i])
		require.Equal(t, []string{schema.StageAdvantage, schema.StageBuffer, schema.StageUpdate}, names[len(names)-3:])
	}
	p := progressOf(t, f)
	require.Equal(t, &BufferLine{Consumed: true, Imitated: 11, P50: 0.5, Recalibrated: 0.375, Gamma: 0.25},
		p.Lines[2].Buffer)
	text := p.Markdown()
	require.Contains(t, text, "| grad | replay buffer |\n")
	require.Contains(t, text, " | 14 held, P50 0.500 |\n")
	require.Contains(t, text, " | 11 learnt from again: mean Ã 0.375, P50 0.500, γ 0.250 |\n")
	require.Contains(t, text, "| advantage | 0.00 | 0.00 | 0.00 |\n| buffer | 0.25 | 0.25 | 0.25 |\n| update |")
}

func TestBufferIsLeftOutWithoutReplay(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 1, MaxTurns: 1})
	var updates []api.UpdateInput
	handle(f, api.UpdatePolicy, func(in api.UpdateInput) (api.Updated, error) {
		updates = append(updates, in)
		return f.update(in)
	})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	text, err := json.Marshal(updates[0])
	require.NoError(t, err)
	require.NotContains(t, string(text), "buffer")
	p := progressOf(t, f)
	require.Nil(t, p.Lines[0].Buffer)
	require.NotContains(t, p.Markdown(), "buffer")
}

func TestBufferIsCarriedOverHistories(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: stepsPerHistory + 1, Shards: 1, MaxTurns: 1,
		Needs: stages.Needs{ReplayBuffer: true}})
	f.buffers()
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, f.env.GetWorkflowError(), &again)
	var in TrainRunInput
	require.NoError(t, json.Unmarshal(again.Input.Payloads[0].Data, &in))
	require.Equal(t, ref("buffer", stepsPerHistory), in.Continued.Buffer)

	second := newFakes(t, api.Plan{})
	asked, _, _ := second.buffers()
	second.env.ExecuteWorkflow(TrainRun, in)
	require.NoError(t, second.env.GetWorkflowError())
	require.Equal(t, ref("buffer", stepsPerHistory), (*asked)[0].Before)
}

func TestResumeGoesOnWithTheBufferOfTheLastHead(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 3, Shards: 1, MaxTurns: 1, Needs: stages.Needs{ReplayBuffer: true}})
	f.next = 3
	asked, _, _ := f.buffers()
	handle(f, api.PrepareRun, func(in api.PrepareInput) (api.Prepared, error) {
		out, err := f.prepare(in)
		out.Buffer = ref("buffer", 2)
		return out, err
	})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Resume: true})
	require.NoError(t, f.env.GetWorkflowError())
	require.Len(t, *asked, 1)
	require.Equal(t, ref("buffer", 2), (*asked)[0].Before)
}

// A step without the stage commits no buffer and names none in its head.
func TestAnAmendmentThatEndsReplayForgetsTheBuffer(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 4, Shards: 1, MaxTurns: 1, Needs: stages.Needs{ReplayBuffer: true}})
	with, without := f.plan, f.plan
	without.ReplayBuffer = false
	f.amended = []api.Amendment{{Manifest: ref("amended", 0), Plan: without, From: 2},
		{Manifest: ref("amended", 1), Plan: with, From: 3}}
	asked, updates, _ := f.buffers()
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	var previous []schema.Ref
	for _, in := range *asked {
		previous = append(previous, in.Before)
	}
	require.Equal(t, []schema.Ref{{}, {}, ref("buffer", 3)}, previous, "of steps 1, 3 and 4")
	require.Equal(t, schema.Ref{}, (*updates)[1].Buffer)
}

// A failed buffer stage parks the run; a retry adopts the committed buffer or makes it.
func TestAFailedBufferParks(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 2, MaxTurns: 1, Needs: stages.Needs{ReplayBuffer: true}})
	f.buffers()
	left := broken(f, api.UpdateReplayBuffer, 1, func(api.StageInput) bool { return true }, f.buffer)
	skip := f.after(time.Hour, UpdateSkip)
	f.after(2*time.Hour, UpdateRetry, RetryInput{})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Zero(t, *left)
	require.ErrorContains(t, skip.rejected, "buffer is one piece for the whole step")
}

func TestReplayStageMakesTheBufferThatFollows(t *testing.T) {
	f := newReplayFakes(t, 0)
	var buffer api.StageInput
	handle(f.fakes, api.UpdateReplayBuffer, func(in api.StageInput) (api.Buffered, error) {
		buffer = in
		return api.Buffered{Done: api.Done{Manifest: ref("buffer again")}}, nil
	})
	handle(f.fakes, api.PrepareReplay, func(in api.ReplayInput) (api.ReplayPrepared, error) {
		f.claimed = in
		return api.ReplayPrepared{
			Done: api.Done{Manifest: ref("claim")}, Gen: 3, Stages: append(in.Stages, schema.StageBuffer),
			Made: api.Made{{Stage: schema.StageRollout, Ref: ref("turn", 0)},
				{Stage: schema.StageReward, Ref: ref("rewards of the step")},
				{Stage: schema.StageResample, Ref: ref("selection of the step")}},
			Buffer: ref("buffer before"),
		}, nil
	})
	f.run(t, ReplayStageInput{Run: "r", Step: 7, From: "advantage"})
	require.Equal(t, api.StageInput{
		Scope: api.Scope{Run: "r", Step: 7, Gen: 3, Config: ref("claim")}, Before: ref("buffer before"),
		Made: api.Made{{Stage: schema.StageReward, Ref: ref("rewards of the step")},
			{Stage: schema.StageAdvantage, Ref: ref("batch again")}},
	}, buffer)
	require.Equal(t, schema.StageBuffer, f.compared.Stages[1].Stage)

	f.claimed = api.ReplayInput{}
	f = newReplayFakes(t, 0)
	f.run(t, ReplayStageInput{Run: "r", Step: 7, From: "advantage", Through: "advantage"})
	require.False(t, f.claimed.Follow)
}
