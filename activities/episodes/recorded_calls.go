package episodes

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/env/openai"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// recordedCalls takes the calls of imported conversations together with their recorded answers. Nothing runs, so
// nothing is measured. See ExecuteToolCalls.
func (a ExecuteToolCalls) recordedCalls(ctx context.Context, w *stage.Draft, in api.ToolsInput) (
	[]schema.ToolCallRow, error) {
	past, err := a.Behind(ctx, in.Past, nil)
	if err != nil {
		return nil, err
	}
	trajectories, err := importedTrajectories(ctx, a.Worker.Records, past)
	if err != nil {
		return nil, err
	}
	var rows []schema.ToolCallRow
	for i, t := range trajectories {
		calls, err := openai.CallRows(t)
		if err != nil {
			return nil, refusal.Corruptf("%v", err)
		}
		rows = append(rows, calls...)
		w.Progress.Set(i+1, len(trajectories))
	}
	return rows, nil
}

// importedTrajectories reads the trajectories that an import committed with its turns.
func importedTrajectories(ctx context.Context, r record.Records, past []schema.Manifest) ([]schema.TrajectoryRow,
	error) {
	rows, err := commit.Rows[schema.ImportedRow](ctx, r.Record, record.OfStage(past, schema.StageRollout)...)
	if err != nil {
		return nil, err
	}
	out := make([]schema.TrajectoryRow, len(rows))
	for i, row := range rows {
		out[i] = schema.TrajectoryRow(row)
	}
	return out, nil
}
