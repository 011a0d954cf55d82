package workflows

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/schema"
)

// buffers answers the stage buffer, full at every third step, and lists what it and the update were asked.
func (f *fakes) buffers() (asked *[]wire.BufferInput, updates *[]wire.UpdateInput, heads *[][]wire.StageRef) {
	asked, updates, heads = &[]wire.BufferInput{}, &[]wire.UpdateInput{}, f.heads()
	handle(f, wire.UpdateReplayBuffer, func(in wire.BufferInput) (wire.Buffered, error) {
		*asked = append(*asked, in)
		return f.buffer(in)
	})
	handle(f, wire.UpdatePolicy, func(in wire.UpdateInput) (wire.Updated, error) {
		*updates = append(*updates, in)
		out, err := f.update(in)
		out.Gamma = new(0.25)
		return out, err
	})
	return asked, updates, heads
}

func (f *fakes) buffer(in wire.BufferInput) (wire.Buffered, error) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	out := wire.Buffered{
		Done: wire.Done{Manifest: ref("buffer", in.Step), Timing: wire.Timing{Stage: wire.StageBuffer, Start: start, End: start + 250_000}},
		Size: 7 * in.Step, Stored: 7, P50: 0.5,
	}
	if in.Step%3 == 0 {
		out.Size, out.Stored, out.Consumed, out.Imitated, out.Recalibrated = 0, 0, true, 11, 0.375
	}
	return out, nil
}

func TestEveryStepGoesOnWithTheBufferOfTheOneBefore(t *testing.T) {
	f := newFakes(t, wire.Plan{Recipe: "r", Steps: 3, Shards: 1, MaxTurns: 1, Replay: true})
	asked, updates, heads := f.buffers()
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Len(t, *asked, 3)
	require.Equal(t, schema.Ref{}, (*asked)[0].Previous)
	for i, in := range *asked {
		step := i + 1
		require.Equal(t, ref("batch", step), in.Batch)
		require.Equal(t, wire.StageReward, in.Rewards.Key[:len(wire.StageReward)])
		require.Equal(t, ref("buffer", step), (*updates)[i].Buffer)
		if i > 0 {
			require.Equal(t, ref("buffer", step-1), in.Previous)
		}
		names := stageNames((*heads)[i])
		require.Equal(t, []string{wire.StageAdvantage, wire.StageBuffer, wire.StageUpdate}, names[len(names)-3:])
	}
	p := progressOf(t, f)
	require.Equal(t, &ReplayLine{Consumed: true, Imitated: 11, P50: 0.5, Recalibrated: 0.375, Gamma: 0.25}, p.Lines[2].Replay)
	text := p.Markdown()
	require.Contains(t, text, "| seconds | replay |\n")
	require.Contains(t, text, " | 14 held, P50 0.500 |\n")
	require.Contains(t, text, " | 11 learnt from again: mean Ã 0.375, P50 0.500, γ 0.250 |\n")
	require.Contains(t, text, "| advantage | buffer | update |")
	require.Contains(t, text, "| 0.00 | 0.25 | 0.00 |")
}

func TestBufferIsLeftOutWithoutReplay(t *testing.T) {
	f := newFakes(t, wire.Plan{Recipe: "r", Steps: 1, Shards: 1, MaxTurns: 1})
	var updates []wire.UpdateInput
	handle(f, wire.UpdatePolicy, func(in wire.UpdateInput) (wire.Updated, error) {
		updates = append(updates, in)
		return f.update(in)
	})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	text, err := json.Marshal(updates[0])
	require.NoError(t, err)
	require.NotContains(t, string(text), "buffer")
	p := progressOf(t, f)
	require.Nil(t, p.Lines[0].Replay)
	require.NotContains(t, p.Markdown(), "buffer")
}

func TestBufferIsCarriedOverHistories(t *testing.T) {
	f := newFakes(t, wire.Plan{Recipe: "r", Steps: stepsPerHistory + 1, Shards: 1, MaxTurns: 1, Replay: true})
	f.buffers()
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, f.env.GetWorkflowError(), &again)
	var in TrainRunInput
	require.NoError(t, json.Unmarshal(again.Input.Payloads[0].Data, &in))
	require.Equal(t, ref("buffer", stepsPerHistory), in.Continued.Buffer)

	second := newFakes(t, wire.Plan{})
	asked, _, _ := second.buffers()
	second.env.ExecuteWorkflow(TrainRun, in)
	require.NoError(t, second.env.GetWorkflowError())
	require.Equal(t, ref("buffer", stepsPerHistory), (*asked)[0].Previous)
}

func TestResumeGoesOnWithTheBufferOfTheLastHead(t *testing.T) {
	f := newFakes(t, wire.Plan{Recipe: "r", Steps: 3, Shards: 1, MaxTurns: 1, Replay: true})
	f.next = 3
	asked, _, _ := f.buffers()
	handle(f, wire.PrepareRun, func(in wire.PrepareInput) (wire.Prepared, error) {
		out, err := f.prepare(in)
		out.Buffer = ref("buffer", 2)
		return out, err
	})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Resume: true})
	require.NoError(t, f.env.GetWorkflowError())
	require.Len(t, *asked, 1)
	require.Equal(t, ref("buffer", 2), (*asked)[0].Previous)
}

// A step without the stage leaves no buffer, as its head does not.
func TestAnAmendmentThatEndsReplayForgetsTheBuffer(t *testing.T) {
	f := newFakes(t, wire.Plan{Recipe: "r", Steps: 4, Shards: 1, MaxTurns: 1, Replay: true})
	with, without := f.plan, f.plan
	without.Replay = false
	f.amended = []wire.Amendment{{Manifest: ref("amended", 0), Plan: without, From: 2}, {Manifest: ref("amended", 1), Plan: with, From: 3}}
	asked, updates, _ := f.buffers()
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	var previous []schema.Ref
	for _, in := range *asked {
		previous = append(previous, in.Previous)
	}
	require.Equal(t, []schema.Ref{{}, {}, ref("buffer", 3)}, previous, "of steps 1, 3 and 4")
	require.Equal(t, schema.Ref{}, (*updates)[1].Buffer)
}

// A buffer that fails parks the run, and a retry adopts or makes it.
func TestAFailedBufferParks(t *testing.T) {
	f := newFakes(t, wire.Plan{Recipe: "r", Steps: 1, Shards: 2, MaxTurns: 1, Replay: true})
	f.buffers()
	left := broken(f, wire.UpdateReplayBuffer, 1, func(wire.BufferInput) bool { return true }, f.buffer)
	skip := f.after(time.Hour, UpdateSkip)
	f.after(2*time.Hour, UpdateRetry, RetryInput{})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Zero(t, *left)
	require.ErrorContains(t, skip.rejected, "buffer is one piece for the whole step")
}

func TestReplayStageMakesTheBufferThatFollows(t *testing.T) {
	f := newReplayFakes(t, 0)
	var buffer wire.BufferInput
	handle(f.fakes, wire.UpdateReplayBuffer, func(in wire.BufferInput) (wire.Buffered, error) {
		buffer = in
		return wire.Buffered{Done: wire.Done{Manifest: ref("buffer again")}}, nil
	})
	handle(f.fakes, wire.PrepareReplay, func(in wire.ReplayInput) (wire.ReplayPrepared, error) {
		f.claimed = in
		return wire.ReplayPrepared{
			Done: wire.Done{Manifest: ref("claim")}, Gen: 3, Stages: append(in.Stages, wire.StageBuffer), Turns: []schema.Ref{ref("turn", 0)},
			Rewards: ref("rewards of the step"), Selection: ref("selection of the step"), Buffer: ref("buffer before"),
		}, nil
	})
	f.run(t, ReplayStageInput{Run: "r", Step: 7, From: "advantage"})
	require.Equal(t, wire.BufferInput{
		Scope:    wire.Scope{Run: "r", Step: 7, Gen: 3, Config: ref("claim")},
		Previous: ref("buffer before"), Rewards: ref("rewards of the step"), Batch: ref("batch again"),
	}, buffer)
	require.Equal(t, wire.StageBuffer, f.compared.Stages[1].Stage)

	f.claimed = wire.ReplayInput{}
	f = newReplayFakes(t, 0)
	f.run(t, ReplayStageInput{Run: "r", Step: 7, From: "advantage", Through: "advantage"})
	require.False(t, f.claimed.Follow)
}
