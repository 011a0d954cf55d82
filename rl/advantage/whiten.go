package advantage

import "math"

// Masked whitening, as released PPO code does it: over the N valid tokens of the batch
//
//	μ = Σ x m / (N + 1e-8)
//	v = Σ m (x − μ)² / (N + 1e-8) · N/(N−1)
//	A = (x − μ) / √(v + 1e-8) · m
//
// Departure: with fewer than two valid tokens v is undefined and A is 0 (the code raises an error).
// Equal values give up to 1e-4·|x|/N instead of 0, because the 1e-8 added to N keeps μ that far from x.

const whitenEpsilon = 1e-8

// whiten gives the valid tokens of the whole batch mean 0 and deviation 1. The whole batch must be given: a part of it,
// whitened alone, has other results. The input was checked.
func whiten(x [][]float64, mask [][]int32) [][]float64 {
	out, rows := newRows(mask), all(len(mask))
	tokens, least := span(x, mask, rows)
	if tokens < 2 {
		return out
	}
	n, scratch := float64(tokens), make([]float64, 0, len(rows))
	// Offsets from the least value keep the sum exact where values are equal.
	offset := sumTokens(x, mask, rows, scratch, func(v float64) float64 { return v - least })
	mean := (least*n + offset) / (n + whitenEpsilon)
	square := sumTokens(x, mask, rows, scratch, func(v float64) float64 { return (v - mean) * (v - mean) })
	variance := square / (n + whitenEpsilon) * n / (n - 1)
	scale := math.Sqrt(variance + whitenEpsilon)
	for i, row := range mask {
		for t, m := range row {
			if m == 1 {
				out[i][t] = (x[i][t] - mean) / scale
			}
		}
	}
	return out
}
