package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/env/openai"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// conversations reads an uploaded file in OpenAI's chat format. A bad item is the uploader's to mend.
func (a ImportTrajectories) conversations(ctx context.Context, in wire.ImportInput) (imported, error) {
	data, err := a.Record.ReadBlob(ctx, in.Source, in.Digest)
	if err != nil {
		return imported{}, err
	}
	tasks, err := openai.Read(data)
	if err != nil {
		return imported{}, refuse(wire.FailBadInput, "%s: %v", in.Source, err)
	}
	t := openai.Rows(in.Scope.Step, tasks, a.tokens.Encode)
	return imported{t.Prompts, t.Turns, t.Trajectories}, nil
}

// recordedCalls takes the calls of imported conversations with the answers that stand in them:
// nothing runs, so nothing is measured. See ExecuteToolCalls.
func (a ExecuteToolCalls) recordedCalls(ctx context.Context, w *draft, in wire.ToolsInput, _ *recipes.Recipe) ([]schema.ToolCallRow, []schema.TimingRow, error) {
	trajectories, err := read[schema.TrajectoryRow](ctx, a.Deps, in.Turns...)
	if err != nil {
		return nil, nil, err
	}
	var rows []schema.ToolCallRow
	for i, t := range trajectories {
		calls, err := openai.CallRows(t)
		if err != nil {
			return nil, nil, refuse(wire.FailCorrupt, "%v", err)
		}
		rows = append(rows, calls...)
		w.progress.set(i+1, len(trajectories))
	}
	return rows, nil, nil
}
