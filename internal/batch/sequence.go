package batch

import (
	"cmp"
	"slices"

	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/schema"
)

// Sequence is one kept trajectory: its tokens, turn after turn, with the known values of each token.
type Sequence struct {
	schema.BatchRow
	entropies []float32 // of the policy before the update; nil if they were not requested
	reference []float32 // the reference's log-probabilities; nil if they were not requested
	reward    float64
	masked    bool             // none of its tokens is in the loss
	written   int              // tokens that the policy wrote, masked or not
	turns     []schema.TurnRow // in order
	owners    []string         // the trajectory that wrote each turn; nil if no turns are shared
	// steps are the transitions by turn; nil if tasks are questions.
	steps map[int32]schema.TransitionRow
}

// Kept joins the kept trajectories with their rewards and turns, in canonical order. The tokens of a masked trajectory
// are removed from its loss mask; its reward counts like any other.
func Kept(selection []schema.SelectionRow, rewards []schema.RewardRow, turns []schema.TurnRow) ([]Sequence, error) {
	rewardOf := make(map[string]float64, len(rewards))
	for _, r := range rewards {
		rewardOf[r.TrajectoryID] = r.Reward
	}
	tokens, turnsOf := JoinTurns(turns), byTrajectory(turns)
	kept := slices.DeleteFunc(slices.Clone(selection), func(s schema.SelectionRow) bool { return !s.Kept })
	slices.SortFunc(kept, func(x, y schema.SelectionRow) int { return cmp.Compare(x.TrajectoryID, y.TrajectoryID) })
	out := make([]Sequence, len(kept))
	for i, s := range kept {
		reward, ok := rewardOf[s.TrajectoryID]
		if !ok {
			return nil, refusal.Corruptf("trajectory %s is selected and has no reward", s.TrajectoryID)
		}
		row, ok := tokens[s.TrajectoryID]
		if !ok {
			return nil, refusal.Corruptf("trajectory %s is selected and has no turns", s.TrajectoryID)
		}
		row.GroupID, row.TrajectoryID, row.Count, row.Weight = s.GroupID, s.TrajectoryID, s.Count, s.Weight
		written := tokensUnder(row.LossMask)
		if s.Masked != nil {
			clear(row.LossMask)
		}
		out[i] = Sequence{BatchRow: row, reward: reward, masked: s.Masked != nil, written: written,
			turns: turnsOf[s.TrajectoryID]}
	}
	return out, nil
}

// Unmasked joins the turns of the trajectories that models are asked about: those that are kept and not masked, in
// canonical order. It skips trajectories of other shards, whose turns are not given.
func Unmasked(selection []schema.SelectionRow, turns []schema.TurnRow) []schema.BatchRow {
	tokens := JoinTurns(turns)
	var out []schema.BatchRow
	for _, s := range selection {
		row, ok := tokens[s.TrajectoryID]
		if !s.Kept || s.Masked != nil || !ok {
			continue
		}
		row.GroupID, row.TrajectoryID = s.GroupID, s.TrajectoryID
		out = append(out, row)
	}
	slices.SortFunc(out, func(x, y schema.BatchRow) int { return cmp.Compare(x.TrajectoryID, y.TrajectoryID) })
	return out
}

// Sampled joins the turns of all trajectories that are given, kept or not, in canonical order.
func Sampled(turns []schema.TurnRow) []schema.BatchRow {
	joined := JoinTurns(turns)
	out := make([]schema.BatchRow, 0, len(joined))
	for id, row := range joined {
		row.TrajectoryID = id
		out = append(out, row)
	}
	slices.SortFunc(out, func(x, y schema.BatchRow) int { return cmp.Compare(x.TrajectoryID, y.TrajectoryID) })
	return out
}

// JoinTurns concatenates each trajectory's turns in order. If the log-probabilities of one turn are null, the whole
// trajectory has none.
func JoinTurns(turns []schema.TurnRow) map[string]schema.BatchRow {
	out := map[string]schema.BatchRow{}
	for id, own := range byTrajectory(turns) {
		row, known := schema.BatchRow{}, true
		for _, t := range own {
			row.TokenIDs = append(row.TokenIDs, t.TokenIDs...)
			row.LossMask = append(row.LossMask, t.LossMask...)
			row.OldLogProbs = append(row.OldLogProbs, t.LogProbs...)
			known = known && t.LogProbs != nil
		}
		if !known {
			row.OldLogProbs = nil
		}
		out[id] = row
	}
	return out
}

// byTrajectory returns each trajectory's turns in order.
func byTrajectory(turns []schema.TurnRow) map[string][]schema.TurnRow {
	out := map[string][]schema.TurnRow{}
	for _, t := range turns {
		out[t.TrajectoryID] = append(out[t.TrajectoryID], t)
	}
	for _, own := range out {
		slices.SortStableFunc(own, func(x, y schema.TurnRow) int { return cmp.Compare(x.Turn, y.Turn) })
	}
	return out
}

// Tokens counts the tokens in the loss.
func Tokens(rows []schema.BatchRow) int64 {
	n := 0
	for _, r := range rows {
		n += tokensUnder(r.LossMask)
	}
	return int64(n)
}

// tokensUnder counts the tokens under a mask.
func tokensUnder(mask []int32) int {
	n := 0
	for _, m := range mask {
		n += int(m)
	}
	return n
}
