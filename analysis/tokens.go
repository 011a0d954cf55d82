package analysis

import (
	"context"
	"iter"
	"slices"

	"github.com/ropewalk/ropewalk/schema"
)

// TokenRow is one trajectory as a sequence of tokens, turn after turn. A list is nil if it was not recorded for the
// whole trajectory; the others are as long as Mask.
type TokenRow struct {
	GroupID, TrajectoryID string
	Mask                  []int32   // 1 for tokens the policy produced
	LogProbs, Entropies   []float32 // of the policy that wrote them
	OldLogProbs           []float32 // of the policy before the update, recomputed
	ReferenceLogProbs     []float32
	Advantages            []float32 // of the batch, weights included
	Anchors               []string  // of each turn: the hash of what the policy saw before it
}

// TokenRows returns a finished step's trajectories, in canonical order, without those that were measured only.
func (v *Visible) TokenRows(ctx context.Context, step int) ([]TokenRow, error) {
	var t stepTables
	l := v.loader(ctx, step)
	load(l, &t.turns)
	load(l, &t.branches)
	load(l, &t.outputs)
	l.Go(func() (err error) {
		t.batch, err = stepBatch(l.ctx, v, step)
		return err
	})
	if err := l.Wait(); err != nil {
		return nil, err
	}
	for i := range t.outputs {
		t.outputs[i].Entropies = nil // they are not of the policy that wrote the tokens
	}
	apart := map[string]bool{}
	for _, b := range t.branches {
		apart[b.TrajectoryID] = apart[b.TrajectoryID] || b.Role == schema.RoleMonitor
	}
	t.turns = slices.DeleteFunc(t.turns, func(r schema.TurnRow) bool { return apart[r.TrajectoryID] })
	t.turns = schema.Inherit(t.turns, t.branches)
	for _, r := range t.turns { // each is of a trajectory
		t.selection = append(t.selection, schema.SelectionRow{GroupID: r.GroupID, TrajectoryID: r.TrajectoryID})
	}
	var out []TokenRow
	for _, c := range t.closeups() {
		out = append(out, c.Tokens)
	}
	return out, nil
}

// sequence concatenates a trajectory's turns.
func sequence(turns []schema.TurnRow) TokenRow {
	out := TokenRow{GroupID: turns[0].GroupID, TrajectoryID: turns[0].TrajectoryID}
	for _, t := range turns {
		out.Mask = append(out.Mask, t.LossMask...)
		out.LogProbs = append(out.LogProbs, t.LogProbs...)
		out.Entropies = append(out.Entropies, t.Entropies...)
		if !t.IsSummary() { // which is compared with no other turn
			out.Anchors = append(out.Anchors, t.AnchorHash)
		}
	}
	out.LogProbs, out.Entropies = out.whole(out.LogProbs), out.whole(out.Entropies)
	return out
}

// whole returns a list that covers the trajectory, or nil.
func (r TokenRow) whole(list []float32) []float32 {
	if len(list) != len(r.Mask) {
		return nil
	}
	return list
}

// byTrajectory yields the adjacent rows of each trajectory.
func byTrajectory[R any](rows []R, id func(R) string) iter.Seq[[]R] {
	return func(yield func([]R) bool) {
		for len(rows) > 0 {
			n := 1
			for n < len(rows) && id(rows[n]) == id(rows[0]) {
				n++
			}
			if !yield(rows[:n]) {
				return
			}
			rows = rows[n:]
		}
	}
}
