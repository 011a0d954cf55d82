package record

import (
	"context"

	"github.com/ropewalk/ropewalk/schema"
)

// The samples of a tree share turns, which the record holds once. These functions read rows as if every trajectory had
// all of its own.

// WholeTurns returns the turns behind manifests of the rollout, with those that branches share.
func WholeTurns(ctx context.Context, r Records, refs ...schema.Ref) ([]schema.TurnRow, error) {
	turns, err := Read[schema.TurnRow](ctx, r, refs...)
	if err != nil {
		return nil, err
	}
	branches, err := Read[schema.BranchRow](ctx, r, refs...)
	if err != nil {
		return nil, err
	}
	return schema.Inherit(turns, branches), nil
}

// BranchesIn returns the rows of trees behind a shard's chain of turns and tool calls.
func BranchesIn(ctx context.Context, r Records, chain []schema.Ref) ([]schema.BranchRow, error) {
	var turns []schema.Ref
	for _, ref := range chain {
		if IsOfStage(ref, schema.StageRollout) {
			turns = append(turns, ref)
		}
	}
	return Read[schema.BranchRow](ctx, r, turns...)
}
