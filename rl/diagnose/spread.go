package diagnose

// Percentiles by linear interpolation between order statistics (type 7 of Hyndman & Fan 1996), and histograms of whole
// numbers.

import (
	"maps"
	"slices"
)

// Percentile returns the q-th quantile, 0 ≤ q ≤ 1, of values in any order; 0 for an empty list.
func Percentile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return quantile(slices.Sorted(slices.Values(values)), q)
}

// Bin is one bar of a histogram.
type Bin struct{ Value, Count int }

// histogram counts whole numbers; its zero value is ready to add to.
type histogram map[int]int

func (h *histogram) add(value, n int) {
	if *h == nil {
		*h = histogram{}
	}
	(*h)[value] += n
}

// bins lists the values that occur, least first.
func (h histogram) bins() []Bin {
	out := make([]Bin, 0, len(h))
	for _, v := range slices.Sorted(maps.Keys(h)) {
		out = append(out, Bin{v, h[v]})
	}
	return out
}
