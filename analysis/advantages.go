package analysis

import (
	"github.com/ropewalk/ropewalk/schema"
)

// MeanAdvantage returns the mean over the loss tokens of batch rows, weights included; ok is false for rows without
// loss tokens. Tokens that share one advantage give exactly that advantage.
func MeanAdvantage(rows ...schema.BatchRow) (float64, bool) {
	first, sum, n, equal := 0.0, 0.0, 0, true
	for _, b := range rows {
		for t, m := range b.LossMask {
			if m == 0 {
				continue
			}
			a := float64(b.Advantages[t])
			if n == 0 {
				first = a
			}
			equal = equal && a == first
			sum += a
			n++
		}
	}
	switch {
	case n == 0:
		return 0, false
	case equal:
		return first, true
	}
	return sum / float64(n), true
}

// overlay copies the advantages of a trajectory's batch rows to the tokens of its turns, in order. A row of a turn ends
// with the turn's own tokens, however much of the trajectory precedes them in the row.
func overlay(rows []schema.BatchRow, turns []schema.TurnRow) []float32 {
	if len(rows) > 0 && rows[0].Turn == nil {
		return rows[0].Advantages
	}
	of := map[int32]schema.BatchRow{}
	for _, b := range rows {
		of[*b.Turn] = b
	}
	var out []float32
	for _, t := range turns { // in order
		own := make([]float32, len(t.TokenIDs))
		if a := of[t.Turn].Advantages; len(a) >= len(own) {
			copy(own, a[len(a)-len(own):])
		}
		out = append(out, own...)
	}
	return out
}

// advantage returns a trajectory's mean advantage before its weight, or nil if none of its tokens is trained on.
func advantage(rows []schema.BatchRow) *float64 {
	a, ok := MeanAdvantage(rows...)
	if !ok {
		return nil
	}
	if w := rows[0].Weight; w > 0 {
		a /= w
	}
	return &a
}
