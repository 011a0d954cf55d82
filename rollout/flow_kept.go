package rollout

import (
	"context"
	"errors"
	"log/slog"

	"github.com/ropewalk/ropewalk/schema"
)

// FlowMark says how much of each episode is saved, by trajectory: turns, and results of turns.
type FlowMark map[string][2]int

// MarkOf marks all that episodes have.
func MarkOf(episodes []*Episode) FlowMark {
	m := make(FlowMark, len(episodes))
	for _, e := range episodes {
		n := len(e.Turns)
		m[e.TrajectoryID] = [2]int{n, n}
		if e.AwaitsResults() {
			m[e.TrajectoryID] = [2]int{n, n - 1}
		}
	}
	return m
}

// Unsaved returns the rows of what the flow has beyond a mark, and the mark beyond them, which the caller takes once
// they are saved. turns and results are how many of every episode's are committed, and need no saving.
func (f *Flow) Unsaved(mark FlowMark, turns, results int) (rows Rows, beyond FlowMark, err error) {
	all := f.all()
	beyond = make(FlowMark, len(all))
	for _, x := range all {
		m := mark[x.e.TrajectoryID]
		if f.loop.trees == nil { // a tree's episodes begin at different times
			m = [2]int{max(m[0], turns), max(m[1], results)}
		}
		m, err := x.appendUnsaved(m, &rows)
		if err != nil {
			return Rows{}, nil, err
		}
		beyond[x.e.TrajectoryID] = m
	}
	schema.Sort(rows.Turns)
	schema.Sort(rows.Branches)
	schema.Sort(rows.Calls)
	schema.Sort(rows.Transitions)
	return rows, beyond, nil
}

// appendUnsaved adds the rows of an episode beyond its mark, and returns the mark beyond them.
func (x *flowing) appendUnsaved(m [2]int, rows *Rows) ([2]int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	one := []*Episode{x.e}
	if n := x.e.Node; n != nil && n.Role == schema.RoleBranch { // its parent has the turns before
		m = [2]int{max(m[0], n.From), max(m[1], n.From)}
	}
	for ; m[0] < len(x.e.Turns); m[0]++ {
		rows.Turns = append(rows.Turns, TurnRows(one, m[0])...)
		if x.e.Node != nil {
			rows.Branches = append(rows.Branches, x.e.branchRow(m[0]))
		}
	}
	for ; m[1] < len(x.e.Turns) && (x.e.hasResults(m[1]) || m[1] < len(x.e.Turns)-1); m[1]++ {
		rows.Calls = append(rows.Calls, ToolCallRows(one, m[1])...)
		own, err := TransitionRows(one, m[1])
		if err != nil {
			return m, err
		}
		rows.Transitions = append(rows.Transitions, own...)
	}
	return m, nil
}

// Kept are the rows that earlier flows have kept of trees.
type Kept struct {
	by map[string]*kept // by trajectory
}

// KeptOfTrees chooses among the rows of earlier flows. A group's are those of the flow that kept most of it, and among
// equal ones of the first: turns of two flows are never mixed, as in Resume.
func KeptOfTrees(attempts []Rows) *Kept {
	of := map[string]*Kept{} // by group
	for _, rows := range attempts {
		groups := map[string]*Kept{}
		for id, k := range rows.byTrajectory() {
			step, group, _, err := schema.ParseTrajectoryID(id)
			if err != nil { // no episode has it
				continue
			}
			g := schema.GroupID(step, group)
			if groups[g] == nil {
				groups[g] = &Kept{map[string]*kept{}}
			}
			groups[g].by[id] = k
		}
		for id, g := range groups {
			if of[id].Len() < g.Len() {
				of[id] = g
			}
		}
	}
	out := &Kept{map[string]*kept{}}
	for _, g := range of {
		for id, k := range g.by {
			out.by[id] = k
		}
	}
	return out
}

// Len counts the turns and the results of turns.
func (k *Kept) Len() (n int) {
	if k == nil {
		return 0
	}
	for _, own := range k.by {
		n += len(own.turns) + len(own.calls) + len(own.transitions)
	}
	return n
}

// forEpisode returns what is kept of an episode, or nil.
func (k *Kept) forEpisode(e *Episode) *kept {
	if k == nil {
		return nil
	}
	return k.by[e.TrajectoryID]
}

// errNothingKept says that nothing of a sample's next part is kept.
var errNothingKept = errors.New("nothing is kept")

// fromKept takes the next part of a tree's sample, a turn or the results of one, from what an earlier flow has kept. It
// reports whether that has it.
func (f *Flow) fromKept(ctx context.Context, x *flowing) (found bool) {
	k, turn := f.o.Kept.forEpisode(x.e), len(x.e.Turns)
	if k == nil || !k.agrees(x.e) {
		return false
	}
	var entropy *float64
	if x.e.AwaitsResponse() {
		row := k.turns[int32(turn)]
		entropy = k.branches[int32(turn)].Entropy
		if entropy == nil || row.Excluded != nil || row.PolicyVersion != f.o.Version {
			return false
		}
	} else if turn--; !k.hasResults(int32(turn)) || x.awaitRound(ctx) != nil {
		return false
	}
	err := x.change(turn, func(*worked) error {
		more, err := k.continueOne(ctx, f.loop, x.e)
		if err == nil && !more {
			err = errNothingKept
		}
		if err == nil && entropy != nil {
			x.e.Turns[turn].Fork = &Fork{Entropy: entropy}
		}
		return err
	})
	if err != nil {
		slog.DebugContext(ctx, "what was kept of an episode is not taken", "error", err)
	}
	return err == nil
}
