package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/schema"
)

// The samples of a tree share turns, which the record holds once. These functions read rows as if every trajectory had
// all of its own.

// wholeTurns returns the turns behind manifests of the rollout, with those that branches share.
func wholeTurns(ctx context.Context, r records, refs ...schema.Ref) ([]schema.TurnRow, error) {
	turns, err := read[schema.TurnRow](ctx, r, refs...)
	if err != nil {
		return nil, err
	}
	branches, err := read[schema.BranchRow](ctx, r, refs...)
	if err != nil {
		return nil, err
	}
	return schema.Inherit(turns, branches), nil
}

// branchesIn returns the rows of trees behind a shard's chain of turns and tool calls.
func branchesIn(ctx context.Context, r records, chain []schema.Ref) ([]schema.BranchRow, error) {
	var turns []schema.Ref
	for _, ref := range chain {
		if isOfStage(ref, schema.StageRollout) {
			turns = append(turns, ref)
		}
	}
	return read[schema.BranchRow](ctx, r, turns...)
}
