package analysis

import "github.com/ropewalk/ropewalk/schema"

// MeanAdvantage is the mean over the loss tokens of batch rows, with the weights that the batch holds
// them with; false of rows without any. Tokens that share one advantage give exactly that.
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

// overlay puts the advantages of a trajectory's turns, each 0 off its own tokens, onto the whole.
func overlay(rows []schema.BatchRow) []float32 {
	if len(rows) == 1 {
		return rows[0].Advantages
	}
	var out []float32
	for _, b := range rows { // in the order of turns: each holds the one before it
		whole := make([]float32, len(b.Advantages))
		copy(whole, out)
		for t, m := range b.LossMask {
			if m != 0 {
				whole[t] = b.Advantages[t]
			}
		}
		out = whole
	}
	return out
}
