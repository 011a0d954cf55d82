package grading

import (
	"fmt"
	"log/slog"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/selection"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// ScoreEach scores the trajectories that are not excluded and calls done for each of them. A trajectory whose scoring
// panics or returns an invalid row is excluded. If this happens to all of several trajectories, the reward is broken
// and ScoreEach returns an error.
func ScoreEach(trajectories []schema.TrajectoryRow, score func(schema.TrajectoryRow) (schema.RewardRow, error),
	done func(schema.TrajectoryRow, schema.RewardRow)) (rows []schema.RewardRow, excluded []schema.SelectionRow,
	err error) {
	var failures []error
	for _, t := range trajectories {
		if t.Excluded != nil {
			excluded = append(excluded, selection.Exclude(t.GroupID, t.TrajectoryID, *t.Excluded))
			continue
		}
		var row schema.RewardRow
		failure := rescue.Do(func() (err error) {
			if row, err = score(t); err != nil {
				return err
			}
			return row.Validate()
		})
		if failure != nil {
			slog.Warn("exclude a trajectory: it cannot be scored", "trajectory", t.TrajectoryID, "error", failure,
				"stack", rescue.Stack(failure))
			failures = append(failures, failure)
			excluded = append(excluded,
				selection.Exclude(t.GroupID, t.TrajectoryID, rollout.Reason("reward", failure.Error())))
			continue
		}
		rows = append(rows, row)
		done(t, row)
	}
	if len(rows) == 0 && len(failures) > 1 {
		return nil, nil, fmt.Errorf("score %d trajectories: each of them fails: %w", len(failures), failures[0])
	}
	return rows, excluded, nil
}
