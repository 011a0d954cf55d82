package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// commitStages commits stage manifests over the manifests of shards.
func commitStages(ctx workflow.Context, in api.CommitInput) ([]api.StageRef, api.Timing, error) {
	out, err := call[api.Committed](ctx, api.CommitStages, "rollout, sandbox, assemble, reward", in)
	if err != nil || len(in.Rewards) > 0 {
		return out.Stages, out.Timing, err
	}
	if len(out.Refs) != len(in.Stages) {
		return nil, out.Timing, fmt.Errorf("commit stages: asked for %d manifests, got %d", len(in.Stages),
			len(out.Refs))
	}
	stages := make([]api.StageRef, len(out.Refs))
	for i, ref := range out.Refs {
		stages[i] = api.StageRef{Stage: in.Stages[i].Stage, Ref: ref}
	}
	return stages, out.Timing, nil
}

// commitStage commits one stage from the manifests of its shards.
func commitStage(ctx workflow.Context, scope api.Scope, stage string, parts []schema.Ref) (schema.Ref, api.Timing,
	error) {
	out, err := call[api.Committed](ctx, api.CommitStages, stage, api.CommitInput{
		Scope: scope, Stages: []api.StageParts{{Stage: stage, Turn: -1, Parts: parts}},
	})
	if err != nil {
		return schema.Ref{}, api.Timing{}, err
	}
	if len(out.Refs) != 1 {
		return schema.Ref{}, api.Timing{}, fmt.Errorf("commit stages: asked for 1 manifest, got %d", len(out.Refs))
	}
	return out.Refs[0], out.Timing, nil
}
