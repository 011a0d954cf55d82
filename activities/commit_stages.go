package activities

import (
	"context"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/schema"
)

// CommitStages commits the stage manifests of what was done shard by shard, and the step's head
// where the step ends without a publication.
type CommitStages struct{ *Deps }

// Execute commits each stage in turn; one that is committed already is adopted.
func (a CommitStages) Execute(ctx context.Context, in wire.CommitInput) (wire.Committed, error) {
	out := wire.Committed{}
	timing := wire.Timing{Stage: wire.StageCommit, Shard: -1, Turn: -1}
	err := tracked(ctx, &timing, func(ctx context.Context, p *progress) error {
		for i, stage := range in.Stages {
			ref, err := a.commitStage(ctx, in.Scope, stage)
			if err != nil {
				return err
			}
			out.Refs = append(out.Refs, ref)
			p.set(i+1, len(in.Stages))
		}
		if len(in.Head) > 0 {
			return a.commitHead(ctx, in.Scope, in.Head)
		}
		return nil
	})
	timing.Rows = int64(len(out.Refs))
	out.Timing = timing
	return out, err
}

func (a CommitStages) commitStage(ctx context.Context, scope wire.Scope, stage wire.StageParts) (schema.Ref, error) {
	m, err := a.manifest(ctx, spec{scope: scope, stage: stage.Stage, turn: stage.Turn, shard: -1})
	if err != nil {
		return schema.Ref{}, err
	}
	m.Parts = stage.Parts
	_, ref, _, err := a.Record.Commit(ctx, m)
	return ref, err
}

// commitHead names the manifests that a step consumed; the first attempt's head stands.
func (d *Deps) commitHead(ctx context.Context, scope wire.Scope, stages []wire.StageRef) error {
	refs := make([]schema.Ref, len(stages))
	for i, s := range stages {
		refs[i] = s.Ref
	}
	head, err := schema.NewHead(scope.Run, strconv.Itoa(scope.Step), refs...)
	if err != nil {
		return err
	}
	_, _, _, err = d.Record.CommitHead(ctx, head)
	return err
}
