package analysis

import (
	"cmp"
	"context"
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

// TokenRows returns a finished step's trajectories, in canonical order.
func (v *Visible) TokenRows(ctx context.Context, step int) ([]TokenRow, error) {
	turns, err := sampled(ctx, v, step)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(turns, func(a, b schema.TurnRow) int {
		return cmp.Or(cmp.Compare(a.TrajectoryID, b.TrajectoryID), cmp.Compare(a.Turn, b.Turn))
	})
	var out []TokenRow
	all := map[string][]schema.TurnRow{} // by trajectory
	for len(turns) > 0 {
		n := 1
		for n < len(turns) && turns[n].TrajectoryID == turns[0].TrajectoryID {
			n++
		}
		out = append(out, sequence(turns[:n]))
		all[turns[0].TrajectoryID] = turns[:n]
		turns = turns[n:]
	}
	at := make(map[string]*TokenRow, len(out))
	for i := range out {
		at[out[i].TrajectoryID] = &out[i]
	}
	return out, v.addOutputs(ctx, step, at, all)
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

// addOutputs fills in the outputs of other models for the tokens, and the batch's advantages.
func (v *Visible) addOutputs(ctx context.Context, step int, at map[string]*TokenRow,
	turns map[string][]schema.TurnRow) error {
	outputs, err := stepRows[schema.TokenOutputsRow](ctx, v, step)
	if err != nil {
		return err
	}
	for _, o := range outputs {
		if r := at[o.TrajectoryID]; r != nil {
			r.OldLogProbs, r.ReferenceLogProbs = r.whole(o.OldLogProbs), r.whole(o.ReferenceLogProbs)
		}
	}
	batch, err := stepBatch(ctx, v, step)
	if err != nil {
		return err
	}
	for len(batch) > 0 { // the rows of a trajectory are adjacent
		n := 1
		for n < len(batch) && batch[n].TrajectoryID == batch[0].TrajectoryID {
			n++
		}
		if r := at[batch[0].TrajectoryID]; r != nil {
			r.Advantages = r.whole(overlay(batch[:n], turns[batch[0].TrajectoryID]))
		}
		batch = batch[n:]
	}
	return nil
}
