package advantage

import (
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Turn-row statistics (ARLArena's and SPEAR's agent code): GRPO or Dr.GRPO where a trajectory of K
// turns is K rows. The score of a row is the episode's return minus the row's own penalty.
//
//	turn_rows       μ, σ over every row of the group: longer trajectories weigh more
//	per_trajectory  μ, σ over one row of each trajectory; every row is normalised by them
//
// The papers define the statistics over trajectories; the released code runs turn_rows by default.
// Departure: per_trajectory takes the trajectory's first turn, while the code takes the first row that it
// happens to see. In both cases the row's own penalty is part of the statistic.

// Stats says over which rows a group's mean and deviation are taken.
type Stats string

// The two choices.
const (
	StatsTurnRows      Stats = "turn_rows"
	StatsPerTrajectory Stats = "per_trajectory"
)

// TurnRows is the group-relative estimator over turn rows.
type TurnRows struct {
	Norm  Group // its SingleGroup applies to a group whose statistics have one score
	Stats Stats `enum:"turn_rows|per_trajectory"` // StatsTurnRows when empty
}

// Validate reports the first bad field.
func (t TurnRows) Validate() error { return errors.Join(t.Norm.Validate(), choice.Check("", t)) }

// Estimate returns the advantage of each row from its score.
func (t TurnRows) Estimate(scores []float64, rows []Row) ([]float64, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if len(scores) != len(rows) {
		return nil, fmt.Errorf("estimate advantages: %d scores for %d rows", len(scores), len(rows))
	}
	for i, s := range scores {
		if !finite(s) {
			return nil, fmt.Errorf("estimate advantages: score of row %d (%v) is %g", i, rows[i], s)
		}
	}
	o, err := canonical(len(rows), func(i int) Row { return rows[i] })
	if err != nil {
		return nil, fmt.Errorf("estimate advantages: %w", err)
	}
	return t.estimate(scores, o), nil
}

// estimate does the work of Estimate for rows whose canonical order is known.
func (t TurnRows) estimate(scores []float64, o order) []float64 {
	out, scratch := make([]float64, len(scores)), []float64(nil)
	for g := range len(o.groups) - 1 {
		if t.Stats == StatsPerTrajectory {
			scratch = scratch[:0]
			for k := o.groups[g]; k < o.groups[g+1]; k++ {
				scratch = append(scratch, scores[o.trajectory(k)[0]])
			}
		} else {
			scratch = gather(scratch, scores, o.group(g))
		}
		t.Norm.fill(out, scores, o.group(g), scratch)
	}
	return out
}
