package data

import (
	"context"

	"github.com/ropewalk/ropewalk/env/openai"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// conversations reads an uploaded file in OpenAI's chat format. A bad item is the uploader's to fix.
func (a ImportTrajectories) conversations(ctx context.Context, in api.ImportInput) (imported, error) {
	data, err := a.Record.ReadBlob(ctx, in.Source, in.Digest)
	if err != nil {
		return imported{}, err
	}
	tasks, err := openai.Read(data)
	if err != nil {
		return imported{}, badinput.Errorf("%s: %v", in.Source, err)
	}
	t := openai.Rows(in.Scope.Step, tasks, a.Recipes.Tokens.Encode)
	return imported{t.Prompts, t.Turns, t.Trajectories}, nil
}
