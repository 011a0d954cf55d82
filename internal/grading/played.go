package grading

import (
	"cmp"
	"slices"

	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// Played returns how trajectories fared in their environment, by trajectory.
func Played(rows []schema.TransitionRow) map[string]reward.Played {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b schema.TransitionRow) int { return cmp.Compare(a.Turn, b.Turn) })
	out := map[string]reward.Played{}
	for _, r := range rows {
		if r.Excluded != nil {
			continue
		}
		p := out[r.TrajectoryID]
		p.Paid, p.Solved = p.Paid+r.Reward, p.Solved || r.Success
		if r.Valid {
			p.Acted++
		}
		out[r.TrajectoryID] = p
	}
	return out
}

// PlayedIn returns how episodes fared in their environment, by trajectory.
func PlayedIn(episodes []*rollout.Episode) map[string]reward.Played {
	out := make(map[string]reward.Played, len(episodes))
	for _, e := range episodes {
		out[e.TrajectoryID] = PlayedBy(e)
	}
	return out
}

// PlayedBy is how an episode fared in its environment.
func PlayedBy(e *rollout.Episode) reward.Played {
	p := reward.Played{Solved: e.Success()}
	for _, t := range e.Turns {
		if t.Transition != nil {
			p.Paid += t.Transition.Reward
			if t.Transition.Valid {
				p.Acted++
			}
		}
	}
	return p
}
