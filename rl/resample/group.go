package resample

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/rl/advantage"
)

// group is the rows [from, to) of the canonical order, with VSPO's result for them.
type group struct {
	id       string
	from, to int
	scored   int // rows with a reward
	prompt   advantage.Prompt
	// flat says that the variance of the rewards is below VSPO's threshold.
	flat bool
}

// short reports that the group has fewer than two rewards after exclusions. A group that was sampled with one row is
// not short.
func (g group) short() bool { return g.scored < g.to-g.from && g.scored < 2 }

// rewards returns the rewards of the group's rows that have one.
func (g group) rewards(rows []Row) []float64 {
	out := make([]float64, 0, g.scored)
	for i := g.from; i < g.to; i++ {
		if !rows[i].Excluded {
			out = append(out, rows[i].Reward)
		}
	}
	return out
}

// canonical returns the rows sorted by group, then trajectory, and checks them.
func canonical(rows []Row) ([]Row, error) {
	sorted := inOrder(rows)
	for i := range sorted {
		r := &sorted[i]
		if r.Excluded {
			*r = Row{GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, Round: r.Round, Excluded: true}
		}
		if err := r.check(); err != nil {
			return nil, err
		}
		if i > 0 && r.GroupID == sorted[i-1].GroupID && r.TrajectoryID == sorted[i-1].TrajectoryID {
			return nil, fmt.Errorf("trajectory %s of group %s occurs twice", r.TrajectoryID, r.GroupID)
		}
		if i > 0 && r.GroupID == sorted[i-1].GroupID && r.Round != sorted[i-1].Round {
			return nil, fmt.Errorf("group %s is of rounds %d and %d", r.GroupID, sorted[i-1].Round, r.Round)
		}
	}
	return sorted, nil
}

// check reports values that are impossible for a trajectory.
func (r *Row) check() error {
	if math.IsNaN(r.Reward) || math.IsInf(r.Reward, 0) {
		return fmt.Errorf("reward of trajectory %s of group %s is %g", r.TrajectoryID, r.GroupID, r.Reward)
	}
	if r.ToolErrors < 0 || r.ToolErrors > r.ToolCalls || r.AnswerTags < 0 || r.Turns < 0 {
		return fmt.Errorf(
			"trajectory %s of group %s has impossible counts: %d errors of %d calls, %d answers, %d turns",
			r.TrajectoryID, r.GroupID, r.ToolErrors, r.ToolCalls, r.AnswerTags, r.Turns,
		)
	}
	if r.Round < 0 {
		return fmt.Errorf("trajectory %s of group %s is of round %d", r.TrajectoryID, r.GroupID, r.Round)
	}
	if p := r.Penalties; p != nil && !(p.Error >= 0 && p.Format >= 0 && !math.IsInf(p.Total(), 0)) {
		return fmt.Errorf(
			"trajectory %s of group %s has penalties %g and %g", r.TrajectoryID, r.GroupID, p.Error, p.Format,
		)
	}
	return nil
}

// inOrder copies the rows into canonical order.
func inOrder(rows []Row) []Row {
	if slices.IsSortedFunc(rows, func(a, b Row) int {
		return cmp.Or(strings.Compare(a.GroupID, b.GroupID), strings.Compare(a.TrajectoryID, b.TrajectoryID))
	}) {
		return slices.Clone(rows)
	}
	out := make([]Row, 0, len(rows))
	for _, k := range sortedKeys(rows) {
		out = append(out, rows[k.at])
	}
	return out
}

// rowKey is what a row is sorted by inside its group.
type rowKey struct {
	trajectory string
	at         int
}

// sortedKeys gathers rows by group and sorts inside the groups, because comparing and moving whole rows of many groups
// is expensive.
func sortedKeys(rows []Row) []rowKey {
	byID, of := make(map[string]int, len(rows)/8+1), make([]int, len(rows))
	var ids []string
	var sizes []int
	for i := range rows {
		k, ok := byID[rows[i].GroupID]
		if !ok {
			k = len(ids)
			byID[rows[i].GroupID] = k
			ids, sizes = append(ids, rows[i].GroupID), append(sizes, 0)
		}
		of[i] = k
		sizes[k]++
	}
	slices.Sort(ids)
	from, next := make([]int, len(ids)), 0 // where each group's keys go, by its number
	for _, id := range ids {
		k := byID[id]
		from[k], next = next, next+sizes[k]
	}
	keys := make([]rowKey, len(rows))
	for i := range rows {
		keys[from[of[i]]] = rowKey{trajectory: rows[i].TrajectoryID, at: i}
		from[of[i]]++
	}
	for k, end := range from {
		slices.SortFunc(
			keys[end-sizes[k]:end], func(a, b rowKey) int { return strings.Compare(a.trajectory, b.trajectory) },
		)
	}
	return keys
}

// splitGroups finds the groups of sorted rows.
func splitGroups(rows []Row) []group {
	var out []group
	for i := range rows {
		r := &rows[i]
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
