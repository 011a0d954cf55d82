package resample

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/rl/advantage"
)

// group is the rows [from, to) of the canonical order with what VSPO says of them.
type group struct {
	id       string
	from, to int
	scored   int // rows with a reward
	prompt   advantage.Prompt
	// flat: the rewards are too alike to teach anything.
	flat bool
}

// short reports that exclusions left the group fewer than two rewards. A group that was sampled
// with one row is none of that kind.
func (g group) short() bool { return g.scored < g.to-g.from && g.scored < 2 }

// rewards are those of the group's rows that have one.
func (g group) rewards(rows []Row) []float64 {
	var out []float64
	for _, r := range rows[g.from:g.to] {
		if !r.Excluded {
			out = append(out, r.Reward)
		}
	}
	return out
}

// canonical returns the rows sorted by group, then trajectory, and checks them.
func canonical(rows []Row) ([]Row, error) {
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.GroupID, b.GroupID), cmp.Compare(a.TrajectoryID, b.TrajectoryID))
	})
	for i, r := range sorted {
		if r.Excluded {
			r = Row{GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, Excluded: true}
			sorted[i] = r
		}
		if math.IsNaN(r.Reward) || math.IsInf(r.Reward, 0) {
			return nil, fmt.Errorf("reward of trajectory %s of group %s is %g", r.TrajectoryID, r.GroupID, r.Reward)
		}
		if r.ToolErrors < 0 || r.ToolErrors > r.ToolCalls || r.AnswerTags < 0 || r.Turns < 0 {
			return nil, fmt.Errorf("trajectory %s of group %s has impossible counts: %d errors of %d calls, %d answers, %d turns",
				r.TrajectoryID, r.GroupID, r.ToolErrors, r.ToolCalls, r.AnswerTags, r.Turns)
		}
		if i > 0 && r.GroupID == sorted[i-1].GroupID && r.TrajectoryID == sorted[i-1].TrajectoryID {
			return nil, fmt.Errorf("trajectory %s of group %s occurs twice", r.TrajectoryID, r.GroupID)
		}
	}
	return sorted, nil
}

// cut finds the groups of sorted rows.
func cut(rows []Row) []group {
	var out []group
	for i, r := range rows {
		if len(out) == 0 || out[len(out)-1].id != r.GroupID {
			out = append(out, group{id: r.GroupID, from: i})
		}
		g := &out[len(out)-1]
		g.to = i + 1
		if !r.Excluded {
			g.scored++
		}
	}
	return out
}
