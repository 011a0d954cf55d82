package episodes

import (
	"context"
	"log/slog"
	"time"

	"github.com/ropewalk/ropewalk/activities/resource"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/activities/summary"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/trace"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool"
)

// ExecuteToolCalls runs the tool calls of one turn of one shard, each tool with its own calls, or applies the turn's
// actions to the interactive environment. A call that fails is a verdict, and so is an invalid action. If a tool or the
// environment breaks on one trajectory, that trajectory is excluded. A broken tool or environment is an error.
type ExecuteToolCalls struct{ *stage.Worker }

// Execute commits one row for each call or action. The time that each took goes only to the timings table.
func (a ExecuteToolCalls) Execute(ctx context.Context, e *stage.Env, in api.ToolsInput) (out api.ToolsDone, err error) {
	inputs := append([]schema.Ref{in.Prompts}, in.Inputs()...)
	s := stage.Spec{Scope: in.Scope, Stage: schema.StageSandbox, Turn: in.Turn, Shard: in.Shard, Inputs: inputs}
	var held []*rollout.Episode
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) (err error) {
		if err := a.Execution.Isolates(w.Recipe); err != nil {
			return err
		}
		if err := a.Execution.HasSessions(w.Recipe); err != nil {
			return err
		}
		defer func() { w.Env.Turnwise.Called(held) }()
		if w.Recipe.Environment.Declaration().Interactive {
			held, err = a.act(ctx, w, in, &out)
			return err
		}
		var rows []schema.ToolCallRow
		var measured []schema.TimingRow
		if w.Recipe.Environment.Name == recipes.OpenAI {
			rows, err = a.recordedCalls(ctx, w, in)
		} else {
			held, rows, measured, err = a.policyCalls(ctx, w, in)
		}
		if err != nil {
			return err
		}
		w.Env.Verdicts.End(rollout.Leaves(held)...)
		out.Calls = len(rows)
		out.Failed, out.Excluded = countCalls(rows)
		w.Timing.Rows = int64(len(rows))
		// The times are committed before the stage: a worker that is killed in between would lose them otherwise.
		if len(measured) > 0 {
			logTimings(a.recordCalls(ctx, in, measured))
		}
		return stage.Put(ctx, w, rows)
	})
	keepEpisodes(a.Worker, out.Done, err, held)
	if err == nil && e.Flow != nil {
		e.Flow.Committed(in.Turn+1, in.Turn+1)
	}
	return out, err
}

// act applies the actions of the turn and commits their transitions. It returns the episodes after these transitions.
func (a ExecuteToolCalls) act(ctx context.Context, w *stage.Draft, in api.ToolsInput,
	out *api.ToolsDone) ([]*rollout.Episode, error) {
	loop, episodes, err := AsOf(ctx, a.Worker, w.Recipe, in.Shard, in.Prompts, in.Past)
	if err != nil {
		return nil, err
	}
	acting := rollout.AwaitingResults(episodes)
	w.Env.Turnwise.Calling(acting)
	if f := w.Env.Flow; f != nil {
		if w.Began, _, _, err = f.Results(ctx, episodes); err != nil {
			return nil, err
		}
	}
	if left := rollout.AwaitingResults(acting); len(left) > 0 {
		if err := loop.StepLeft(ctx, left, len(left) < len(acting)); err != nil {
			return nil, err
		}
	}
	rows, err := rollout.LastTransitionRows(acting)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		switch {
		case r.Excluded != nil:
			out.Excluded++
		case !r.Valid:
			out.Failed++
		}
	}
	out.Calls = len(rows)
	w.Timing.Rows = int64(len(rows))
	files, err := a.Recipes.WorldCode(ctx, w.Recipe)
	if err != nil {
		return nil, err
	}
	if err := w.NoteCode(ctx, in.Scope, schema.NoteEnvironmentCode, files); err != nil {
		return nil, err
	}
	out.Edited = w.Edited
	return episodes, stage.Put(ctx, w, rows)
}

// countCalls counts the failed calls, and the trajectories that are excluded because one of their calls has no
// verdict.
func countCalls(rows []schema.ToolCallRow) (failed, excluded int) {
	broken := map[string]bool{}
	for _, r := range rows {
		switch {
		case r.Excluded != nil:
			broken[r.TrajectoryID] = true
		case r.Status != string(tool.OK):
			failed++
		}
	}
	return failed, len(broken)
}

// policyCalls runs the policy's calls of the last turn, and returns the episodes with the results.
func (a ExecuteToolCalls) policyCalls(ctx context.Context, w *stage.Draft, in api.ToolsInput) ([]*rollout.Episode,
	[]schema.ToolCallRow, []schema.TimingRow, error) {
	loop, episodes, err := AsOf(ctx, a.Worker, w.Recipe, in.Shard, in.Prompts, in.Past)
	if err != nil {
		return nil, nil, nil, err
	}
	pages, err := a.summaries(ctx, w, in.Scope)
	if err != nil {
		return nil, nil, nil, err
	}
	box, err := a.Execution.ToolboxFor(w.Recipe, a.Execution.Notebooks, nil, pages.Summariser())
	if err != nil {
		return nil, nil, nil, err
	}
	calling := rollout.AwaitingResults(episodes)
	w.Env.Turnwise.Calling(calling)
	var measured []schema.TimingRow
	run := func() ([]tool.Outcome, []rollout.CallRef, error) {
		return loop.RunCalls(ctx, box, resource.CallScope(in.Scope), episodes, w.Progress.Set)
	}
	if f := w.Env.Flow; f != nil {
		var ran []rollout.RanCall
		var verdicts map[string]bool
		if w.Began, ran, verdicts, err = f.Results(ctx, episodes); err != nil {
			return nil, nil, nil, err
		}
		run = func() ([]tool.Outcome, []rollout.CallRef, error) {
			return f.RunLeft(ctx, box, episodes, verdicts, w.Progress.Set)
		}
		for _, c := range ran {
			measured = append(measured, callTiming(ctx, in, episodes[c.Episode].TrajectoryID, c.Turn, c.Call, c.Timing,
				c.End))
		}
	}
	outcomes, refs, err := run()
	if err != nil {
		return nil, nil, nil, err
	}
	if err := loop.AbsorbOutcomes(episodes, outcomes); err != nil {
		return nil, nil, nil, err
	}
	resource.EndCalls(ctx, box, in.Scope, episodes, loop.MayCall)
	now := time.Now()
	for i, ref := range refs {
		if outcomes[i].Broken == nil {
			measured = append(measured, callTiming(ctx, in, episodes[ref.Episode].TrajectoryID, ref.Turn, ref.Call,
				outcomes[i].Timing, now))
		}
	}
	return episodes, rollout.LastCallRows(calling), measured, nil
}

// summaries has the run's first policy sum up pages if the recipe asks for it. The engine is leased when the first page
// is read, because many turns read none.
func (a ExecuteToolCalls) summaries(ctx context.Context, w *stage.Draft, scope api.Scope) (*summary.Summaries, error) {
	if w.Recipe.SummaryTokens() == 0 {
		return nil, nil
	}
	_, first, err := a.PolicyAfter(ctx, scope.Run, 0)
	if err != nil {
		return nil, err
	}
	pages, err := summary.For(ctx, w, first, 0)
	if err != nil {
		return nil, err
	}
	w.Manifest.Inputs = append(w.Manifest.Inputs, first.Manifest)
	pages.Generate = func(ctx context.Context, req policy.GenerateRequest) (out policy.Generated, err error) {
		sampler, err := w.Sampler(ctx, scope, w.Recipe)
		if err != nil {
			return out, err
		}
		err = sampler.UseReference(ctx, pages.Version(), func(s policy.Sampler) error {
			out, err = s.Generate(ctx, req)
			return err
		})
		return out, err
	}
	return pages, nil
}

// callTiming returns the row of a call that ended at about the given time. One that nothing was executed for has no
// end, so that no duration of 0 enters a mean. The span is that of the execution under ctx, which commits the result.
func callTiming(ctx context.Context, in api.ToolsInput, trajectory string, turn, call int, t tool.Timing,
	now time.Time) schema.TimingRow {
	row := schema.TimingRow{
		Stage: schema.StageSandbox, Shard: int32(in.Shard), Turn: int32(turn), Kind: "tool_call",
		TrajectoryID: trajectory, Call: int32(call),
		StartMicros:  now.Add(-t.Wall).UnixMicro(),
		QueueSeconds: t.Queue.Seconds(), CPUSeconds: t.CPU.Seconds(), Host: stage.Hostname(), Rows: 1,
	}
	row.Traced(trace.Current(ctx))
	switch {
	case t.Shared:
		row.Shared = new(true)
	case t.Wall > 0:
		row.EndMicros = new(now.UnixMicro())
	}
	return row
}

// recordCalls commits the calls' measured times separately from the stage's own manifest.
func (a ExecuteToolCalls) recordCalls(ctx context.Context, in api.ToolsInput, rows []schema.TimingRow) error {
	s := stage.Spec{Scope: in.Scope, Stage: stage.TimingsCalls, Turn: in.Turn, Shard: in.Shard}
	return a.RecordTimings(ctx, s, rows)
}

// logTimings logs that measured times of calls could not be kept. They are not part of the result, so the stage does
// not fail.
func logTimings(err error) {
	if err != nil {
		slog.Warn("keep measured times", "error", err)
	}
}
