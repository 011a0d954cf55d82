package batch

import (
	"slices"

	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// Whole undoes the layout turns: it joins the turns of each trajectory of a batch, in canonical order, by appending
// each turn's own tokens to those of the previous turn. Rows that are trajectories stay as they are. (For a masked
// trajectory with a history, the positions of its responses are unknown. Its tokens are not used anyway.)
func Whole(batch []schema.BatchRow, history rollout.History) []schema.BatchRow {
	var out []schema.BatchRow
	head, past := 0, []rollout.Span{}
	for _, row := range batch {
		if row.Turn == nil {
			out = append(out, row)
			continue
		}
		row.Turn = nil
		if n := len(out); n > 0 && out[n-1].TrajectoryID == row.TrajectoryID {
			before := out[n-1]
			seen := min(rollout.WindowAfter(head, past, history).Len(len(before.TokenIDs)), len(row.TokenIDs))
			row.TokenIDs, row.LossMask = after(before.TokenIDs, row.TokenIDs, seen),
				after(before.LossMask, row.LossMask, seen)
			for _, list := range [][2]*[]float32{
				{&before.OldLogProbs, &row.OldLogProbs}, {&before.RolloutLogProbs, &row.RolloutLogProbs},
				{&before.ReferenceLogProbs, &row.ReferenceLogProbs},
				{&before.Advantages, &row.Advantages}, {&before.Values, &row.Values}, {&before.Returns, &row.Returns},
			} {
				*list[1] = after(*list[0], *list[1], seen)
			}
			out = out[:n-1]
		} else {
			head, past = max(0, slices.Index(row.LossMask, 1)), past[:0]
		}
		end := len(row.TokenIDs)
		past = append(past, rollout.Span{Begin: end - responseTokens(row.LossMask), End: end})
		out = append(out, row)
	}
	return out
}

// after appends the part of a turn's list that its policy had not seen to the list of earlier turns.
func after[T int32 | float32](earlier, list []T, seen int) []T {
	if list == nil {
		return nil
	}
	return append(slices.Clone(earlier), list[seen:]...)
}

// CutTurns cuts a trajectory without masked turns into the rows of its turns: each row ends where the policy stopped
// writing.
func CutTurns(whole schema.BatchRow, history rollout.History) []schema.BatchRow {
	var rows []schema.BatchRow
	head, begin, past := slices.Index(whole.LossMask, 1), 0, []rollout.Span{}
	for t, m := range whole.LossMask {
		end := t + 1
		if m == 0 || end < len(whole.LossMask) && whole.LossMask[end] == 1 {
			continue
		}
		w := rollout.WindowAfter(head, past, history)
		row, length := whole, w.Len(end)
		row.Turn, row.TokenIDs = new(int32(len(rows))), w.Tokens(whole.TokenIDs, end)
		row.LossMask = own(whole.LossMask, begin, end, length)
		row.OldLogProbs = own(whole.OldLogProbs, begin, end, length)
		row.Advantages = own(whole.Advantages, begin, end, length)
		rows, begin = append(rows, row), end
		past = append(past, rollout.Span{Begin: end - responseTokens(whole.LossMask[:end]), End: end})
	}
	return rows
}

// responseTokens counts the tokens of the response that a list ends with, by its loss mask.
func responseTokens(mask []int32) int {
	n := 0
	for n < len(mask) && mask[len(mask)-1-n] == 1 {
		n++
	}
	return n
}

// own copies a turn's part of a trajectory's list to the end of a row's list and fills the rest with zeros. It
// returns nil for nil.
func own[T int32 | float32](list []T, begin, end, length int) []T {
	if list == nil {
		return nil
	}
	out := make([]T, length)
	copy(out[length-(end-begin):], list[begin:end])
	return out
}
