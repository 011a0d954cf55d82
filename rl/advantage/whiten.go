package advantage

import (
	"fmt"
	"math"
)

// Masked whitening, as released PPO code does it: over the N valid tokens of the batch
//
//	μ = Σ x m / (N + 1e-8)
//	v = Σ m (x − μ)² / (N + 1e-8) · N/(N−1)
//	A = (x − μ) / √(v + 1e-8) · m
//
// Departure: with fewer than two valid tokens, where v does not exist, A is 0 (the code raises).
// Equal values leave at most 1e-4·|x|/N, not 0: the 1e-8 beside N keeps μ that far from x.

const whitenEpsilon = 1e-8

// Whiten gives the valid tokens of the whole batch mean 0 and deviation 1. Batch-wide by
// definition: a part of the batch whitened alone differs.
func Whiten(x [][]float64, mask [][]int32) ([][]float64, error) {
	if err := checkMask(mask); err != nil {
		return nil, fmt.Errorf("whiten: %w", err)
	}
	if err := checkTokens("values", x, mask, false); err != nil {
		return nil, fmt.Errorf("whiten: %w", err)
	}
	return whiten(x, mask), nil
}

// whiten is Whiten over input that was checked.
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
