package activities

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
)

// ExecuteToolCalls runs the tool calls of one turn of one shard in the sandbox. A program that
// fails is a verdict; a sandbox that breaks on one call excludes its trajectory; a broken sandbox is
// an error.
type ExecuteToolCalls struct{ *Deps }

// Execute commits one row per call. How long each took goes to the timings table alone.
func (a ExecuteToolCalls) Execute(ctx context.Context, in wire.ToolsInput) (wire.ToolsDone, error) {
	out := wire.ToolsDone{}
	inputs := append(append([]schema.Ref{in.Prompts}, in.Turns...), in.Tools...)
	s := spec{scope: in.Scope, stage: wire.StageSandbox, turn: in.Turn, shard: in.Shard, inputs: inputs}
	var measured []schema.TimingRow
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.isolatedRecipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		if err := a.hasSessions(recipe); err != nil {
			return err
		}
		run := a.policyCalls
		switch recipe.Environment.Name {
		case recipes.GSM8KSolutions:
			run = a.importedCalls
		case recipes.OpenAI:
			run = a.recordedCalls
		}
		var rows []schema.ToolCallRow
		if rows, measured, err = run(ctx, w, in, recipe); err != nil {
			return err
		}
		out.Calls = len(rows)
		out.Failed, out.Excluded = countCalls(rows)
		w.timing.Rows = int64(len(rows))
		return put(ctx, w, rows)
	})
	if err == nil && len(measured) > 0 {
		logTimings(a.recordCalls(ctx, in, measured))
	}
	return out, err
}

// countCalls counts the calls that failed, and the trajectories that a call without a verdict excludes.
func countCalls(rows []schema.ToolCallRow) (failed, excluded int) {
	broken := map[string]bool{}
	for _, r := range rows {
		switch {
		case r.Excluded != nil:
			broken[r.TrajectoryID] = true
		case sandbox.Status(r.Status).Failed():
			failed++
		}
	}
	return failed, len(broken)
}

// policyCalls runs what the policy has called in the last turn.
func (a ExecuteToolCalls) policyCalls(ctx context.Context, w *draft, in wire.ToolsInput, recipe *recipes.Recipe) ([]schema.ToolCallRow, []schema.TimingRow, error) {
	loop, episodes, err := a.episodes(ctx, recipe, in.Shard, in.Prompts, in.Turns, in.Tools)
	if err != nil {
		return nil, nil, err
	}
	calls, refs := loop.PendingCalls(episodes)
	for i, ref := range refs {
		calls[i].Trace = ref.Trace(episodes)
	}
	var outcomes []sandbox.Outcome
	if recipe.Sandbox.Session {
		outcomes, err = a.runCells(ctx, w, in.Scope, loop, episodes)
	} else {
		outcomes, err = a.runCalls(ctx, w, calls)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := loop.AbsorbOutcomes(episodes, outcomes); err != nil {
		return nil, nil, err
	}
	if recipe.Sandbox.Session {
		a.endNotebooks(ctx, in.Scope, episodes, loop.MayCall)
	}
	var measured []schema.TimingRow
	for i, ref := range refs {
		if outcomes[i].Broken == nil {
			measured = append(measured, callTiming(in, episodes[ref.Episode].TrajectoryID, ref.Turn, ref.Call, outcomes[i].Timing))
		}
	}
	return rollout.ToolCallRows(episodes, in.Turn), measured, nil
}

// batchCalls is how many calls go to the sandbox before progress is reported.
const batchCalls = 512

// runCalls runs the calls in order, a batch at a time, so that a heartbeat can show progress.
func (a ExecuteToolCalls) runCalls(ctx context.Context, w *draft, calls []sandbox.Call) ([]sandbox.Outcome, error) {
	outcomes := make([]sandbox.Outcome, 0, len(calls))
	for start := 0; start < len(calls); start += batchCalls {
		batch, err := sandbox.RunEach(ctx, a.Sandbox, calls[start:min(start+batchCalls, len(calls))])
		if err != nil {
			return nil, fmt.Errorf("run tool calls: %w", err)
		}
		outcomes = append(outcomes, batch...)
		w.progress.set(len(outcomes), len(calls))
	}
	return outcomes, nil
}

func callTiming(in wire.ToolsInput, trajectory string, turn, call int, t sandbox.Timing) schema.TimingRow {
	now := time.Now()
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return schema.TimingRow{
		Stage: wire.StageSandbox, Shard: int32(in.Shard), Turn: int32(turn), Kind: "tool_call", TrajectoryID: trajectory, Call: int32(call),
		StartMicros: now.Add(-t.Wall).UnixMicro(), EndMicros: now.UnixMicro(),
		QueueSeconds: t.Queue.Seconds(), CPUSeconds: t.CPU.Seconds(), Host: host, Rows: 1,
	}
}

// recordCalls commits the calls' measured times beside the stage's own manifest.
func (a ExecuteToolCalls) recordCalls(ctx context.Context, in wire.ToolsInput, rows []schema.TimingRow) error {
	s := spec{scope: in.Scope, stage: "timings_calls", turn: in.Turn, shard: in.Shard}
	return a.recordTimings(ctx, s, rows)
}

// recordTimings commits rows of the timings table at a place of their own; the first attempt's stand.
func (d *Deps) recordTimings(ctx context.Context, s spec, rows []schema.TimingRow) error {
	m, err := d.manifest(ctx, s)
	if err != nil {
		return err
	}
	schema.Sort(rows)
	shard, err := commit.PutRows(ctx, d.Record, m.Place, rows)
	if err != nil {
		return err
	}
	m.Shards = append(m.Shards, shard)
	_, _, _, err = d.Record.Commit(ctx, m)
	return err
}
