package advantage

import (
	"fmt"
	"math"
	"slices"
)

// Functions that the token-level estimators share. They work on rows of tokens, each with a mask that is 1 for
// tokens the policy produced. A value under mask 0 is read only where an estimator's comment says that.

// checkMask reports a mask that is not 0 or 1, naming row and token.
func checkMask(mask [][]int32) error {
	for i, row := range mask {
		for t, m := range row {
			if m != 0 && m != 1 {
				return fmt.Errorf("mask of row %d, token %d is %d, want 0 or 1", i, t, m)
			}
		}
	}
	return nil
}

// checkTokens reports lengths that differ and values that are not finite. It checks values under mask 0
// only if everywhere is set.
func checkTokens(name string, x [][]float64, mask [][]int32, everywhere bool) error {
	if len(x) != len(mask) {
		return fmt.Errorf("%d rows of %s for %d rows of mask", len(x), name, len(mask))
	}
	for i, row := range x {
		if len(row) != len(mask[i]) {
			return fmt.Errorf("row %d has %d of %s for %d tokens", i, len(row), name, len(mask[i]))
		}
		for t, v := range row {
			if (everywhere || mask[i][t] == 1) && !finite(v) {
				return fmt.Errorf("%s of row %d, token %d is %g", name, i, t, v)
			}
		}
	}
	return nil
}

// countTokens returns T, the number of tokens under a row's mask.
func countTokens(mask []int32) int {
	n := 0
	for _, m := range mask {
		n += int(m)
	}
	return n
}

// newRows returns zeros of the mask's shape.
func newRows(mask [][]int32) [][]float64 {
	out := make([][]float64, len(mask))
	for i, row := range mask {
		out[i] = make([]float64, len(row))
	}
	return out
}

// sumTokens sums f over the valid tokens of the given rows: within a row in token order, then over
// the rows by ascending sum. So neither padding nor the order of the rows changes a bit of the sum.
// It overwrites scratch.
func sumTokens(x [][]float64, mask [][]int32, rows []int, scratch []float64, f func(float64) float64) float64 {
	scratch = scratch[:0]
	for _, i := range rows {
		sum := 0.0
		for t, m := range mask[i] {
			if m == 1 {
				sum += f(x[i][t])
			}
		}
		scratch = append(scratch, sum)
	}
	slices.Sort(scratch)
	total := 0.0
	for _, s := range scratch {
		total += s
	}
	return total
}

// span counts the valid tokens of the given rows and finds the least value among them.
func span(x [][]float64, mask [][]int32, rows []int) (n int, least float64) {
	least = math.Inf(1)
	for _, i := range rows {
		for t, m := range mask[i] {
			if m == 1 {
				n, least = n+1, math.Min(least, x[i][t])
			}
		}
	}
	return n, least
}

// all lists the rows 0 to n−1.
func all(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Broadcast writes each row's advantage on every token under its mask, 0 elsewhere.
func Broadcast(advantages []float64, mask [][]int32) ([][]float64, error) {
	if len(advantages) != len(mask) {
		return nil, fmt.Errorf("broadcast advantages: %d advantages for %d rows", len(advantages), len(mask))
	}
	if err := checkMask(mask); err != nil {
		return nil, fmt.Errorf("broadcast advantages: %w", err)
	}
	out := newRows(mask)
	for i, row := range mask {
		if !finite(advantages[i]) {
			return nil, fmt.Errorf("broadcast advantages: advantage of row %d is %g", i, advantages[i])
		}
		for t, m := range row {
			if m == 1 {
				out[i][t] = advantages[i]
			}
		}
	}
	return out, nil
}
