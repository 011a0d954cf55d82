package advantage

import (
	"cmp"
	"fmt"
	"slices"
)

// Row names one training row. In the trajectory layout Turn is 0; in the turn layout a trajectory
// of K turns has K rows. Trajectory need only be unique within its group. No two rows of a batch
// have the same name.
type Row struct {
	Group      string // the prompt or task instance that the row answers
	Trajectory string
	Turn       int // 0, 1, …
}

// String names the row in messages.
func (r Row) String() string {
	return fmt.Sprintf("group %s, trajectory %s, turn %d", r.Group, r.Trajectory, r.Turn)
}

// order is the canonical order of rows: by group name, then trajectory name, then turn. Everything that
// depends on an order uses this one, so the order of the input does not change a bit of the result.
type order struct {
	rows         []int // indexes of the input, in canonical order
	trajectories []int // trajectory k is rows[trajectories[k]:trajectories[k+1]]
	groups       []int // group k is trajectories groups[k] to groups[k+1]
}

// trajectory returns the rows of trajectory k by turn.
func (o order) trajectory(k int) []int { return o.rows[o.trajectories[k]:o.trajectories[k+1]] }

// group returns the rows of group k.
func (o order) group(k int) []int {
	return o.rows[o.trajectories[o.groups[k]]:o.trajectories[o.groups[k+1]]]
}

// skipRows returns the order without the rows that skip reports, and without trajectories and groups that this empties.
func (o order) skipRows(skip func(int) bool) order {
	out := order{rows: make([]int, 0, len(o.rows)), trajectories: []int{0}, groups: []int{0}}
	for g := range len(o.groups) - 1 {
		for k := o.groups[g]; k < o.groups[g+1]; k++ {
			for _, i := range o.trajectory(k) {
				if !skip(i) {
					out.rows = append(out.rows, i)
				}
			}
			if len(out.rows) > out.trajectories[len(out.trajectories)-1] {
				out.trajectories = append(out.trajectories, len(out.rows))
			}
		}
		if n := len(out.trajectories) - 1; n > out.groups[len(out.groups)-1] {
			out.groups = append(out.groups, n)
		}
	}
	return out
}

// canonical finds the order of n rows. Two rows with the same name are an error. Only the distinct names are
// sorted; the rows are counted into place, so that a million rows take a fraction of a second.
func canonical(n int, row func(int) Row) (order, error) {
	groupOf, groups := intern(n, func(i int) string { return row(i).Group })
	type trajectory struct {
		group int
		name  string
	}
	trajectoryOf, trajectories := intern(n, func(i int) trajectory { return trajectory{groupOf[i], row(i).Trajectory} })
	groupRank, _ := ranks(groups, cmp.Compare[string])
	rank, byRank := ranks(trajectories, func(a, b trajectory) int {
		return cmp.Or(cmp.Compare(groupRank[a.group], groupRank[b.group]), cmp.Compare(a.name, b.name))
	})
	for i, t := range trajectoryOf {
		trajectoryOf[i] = rank[t]
	}
	var o order
	o.rows, o.trajectories = bucket(trajectoryOf, len(trajectories))
	for k, t := range byRank {
		if k == 0 || trajectories[t].group != trajectories[byRank[k-1]].group {
			o.groups = append(o.groups, k)
		}
		if err := sortTurns(o.trajectory(k), row); err != nil {
			return order{}, err
		}
	}
	o.groups = append(o.groups, len(trajectories))
	return o, nil
}

// sortTurns sorts one trajectory's rows by turn.
func sortTurns(rows []int, row func(int) Row) error {
	ordered := true
	for k := 1; k < len(rows) && ordered; k++ {
		ordered = row(rows[k-1]).Turn < row(rows[k]).Turn
	}
	if ordered {
		return nil
	}
	slices.SortFunc(
		rows, func(a, b int) int { return cmp.Or(cmp.Compare(row(a).Turn, row(b).Turn), cmp.Compare(a, b)) },
	)
	for k := 1; k < len(rows); k++ {
		if row(rows[k-1]).Turn == row(rows[k]).Turn {
			return fmt.Errorf("rows %d and %d have the same name (%v)", rows[k-1], rows[k], row(rows[k]))
		}
	}
	return nil
}

// intern numbers n keys by first appearance and lists the distinct ones.
func intern[K comparable](n int, key func(int) K) (ids []int, distinct []K) {
	ids, known := make([]int, n), map[K]int{}
	for i := range ids {
		k := key(i)
		if i > 0 && k == distinct[ids[i-1]] { // rows of one group are mostly adjacent
			ids[i] = ids[i-1]
			continue
		}
		id, ok := known[k]
		if !ok {
			id = len(distinct)
			known[k], distinct = id, append(distinct, k)
		}
		ids[i] = id
	}
	return ids, distinct
}

// ranks returns each value's place in sorted order, and the indexes in that order.
func ranks[T any](values []T, compare func(a, b T) int) (rank, sorted []int) {
	rank, sorted = make([]int, len(values)), make([]int, len(values))
	for i := range sorted {
		sorted[i] = i
	}
	slices.SortFunc(sorted, func(a, b int) int { return compare(values[a], values[b]) })
	for place, i := range sorted {
		rank[i] = place
	}
	return rank, sorted
}

// bucket groups the indexes of ids by id: members[offset[k]:offset[k+1]] are the indexes of id k, in
// their order in ids.
func bucket(ids []int, n int) (members, offset []int) {
	members, offset = make([]int, len(ids)), make([]int, n+1)
	for _, id := range ids {
		offset[id+1]++
	}
	for k := range n {
		offset[k+1] += offset[k]
	}
	next := slices.Clone(offset)
	for i, id := range ids {
		members[next[id]] = i
		next[id]++
	}
	return members, offset
}
