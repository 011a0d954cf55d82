package analysis

import (
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/schema"
)

// whole returns the rows of a finished step as if every trajectory had all of its own: the samples of a tree share
// turns, which the record holds once (schema.Inherit).
func whole[R schema.OfTurn[R]](ctx context.Context, v *Visible, step int, columns ...string) ([]R, error) {
	rows, err := stepRows[R](ctx, v, step, columns...)
	if err != nil {
		return nil, err
	}
	branches, err := stepRows[schema.BranchRow](ctx, v, step)
	return schema.Inherit(rows, branches), err
}

// sampled returns whole turns without those of trajectories that were measured only.
func sampled(ctx context.Context, v *Visible, step int) ([]schema.TurnRow, error) {
	turns, err := stepRows[schema.TurnRow](ctx, v, step)
	if err != nil {
		return nil, err
	}
	branches, err := stepRows[schema.BranchRow](ctx, v, step)
	apart := map[string]bool{}
	for _, b := range branches {
		if b.Role == schema.RoleMonitor {
			apart[b.TrajectoryID] = true
		}
	}
	turns = slices.DeleteFunc(turns, func(t schema.TurnRow) bool { return apart[t.TrajectoryID] })
	return schema.Inherit(turns, branches), err
}
