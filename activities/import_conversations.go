package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/env/openai"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// conversations reads an uploaded file in OpenAI's chat format. A bad item is the uploader's to fix.
func (a ImportTrajectories) conversations(ctx context.Context, in api.ImportInput) (imported, error) {
	data, err := a.Record.ReadBlob(ctx, in.Source, in.Digest)
	if err != nil {
		return imported{}, err
	}
	tasks, err := openai.Read(data)
	if err != nil {
		return imported{}, refuse(api.FailBadInput, "%s: %v", in.Source, err)
	}
	t := openai.Rows(in.Scope.Step, tasks, a.tokens.Encode)
	return imported{t.Prompts, t.Turns, t.Trajectories}, nil
}

// recordedCalls takes the calls of imported conversations together with their recorded answers. Nothing runs, so
// nothing is measured. See ExecuteToolCalls.
func (a ExecuteToolCalls) recordedCalls(ctx context.Context, w *draft, in api.ToolsInput,
	_ *recipes.Recipe) ([]schema.ToolCallRow, []schema.TimingRow, error) {
	past, err := a.behind(ctx, in.Past, nil)
	if err != nil {
		return nil, nil, err
	}
	trajectories, err := a.importedTrajectories(ctx, past)
	if err != nil {
		return nil, nil, err
	}
	var rows []schema.ToolCallRow
	for i, t := range trajectories {
		calls, err := openai.CallRows(t)
		if err != nil {
			return nil, nil, refuse(api.FailCorrupt, "%v", err)
		}
		rows = append(rows, calls...)
		w.progress.set(i+1, len(trajectories))
	}
	return rows, nil, nil
}
