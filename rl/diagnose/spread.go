package diagnose

// Descriptions of a set of numbers: mean, sample standard deviation (n−1), extremes; percentiles by
// linear interpolation between order statistics (type 7 of Hyndman & Fan 1996); histograms of
// whole numbers.

import (
	"maps"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/rl/internal/exact"
)

// Spread describes numbers; all fields are 0 for an empty list.
type Spread struct {
	N         int
	Mean      float64
	Deviation float64 // sample standard deviation (n−1); 0 of one number
	Min, Max  float64
}

// series gathers a Spread.
type series struct {
	exact.Moments
	min, max float64
}

func (s *series) add(v float64) {
	if s.N == 0 {
		s.min, s.max = v, v
	}
	s.min, s.max = math.Min(s.min, v), math.Max(s.max, v)
	s.Add(v)
}

func (s *series) merge(o *series) {
	switch {
	case o.N == 0:
		return
	case s.N == 0:
		s.min, s.max = o.min, o.max
	}
	s.min, s.max = math.Min(s.min, o.min), math.Max(s.max, o.max)
	s.Merge(&o.Moments)
}

func (s *series) spread() Spread {
	return Spread{N: s.N, Mean: s.Mean(), Deviation: s.Deviation(), Min: s.min, Max: s.max}
}

// spreadOf describes values.
func spreadOf(values []float64) Spread {
	var s series
	for _, v := range values {
		s.add(v)
	}
	return s.spread()
}

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

func (h *histogram) merge(o histogram) {
	for v, n := range o { // sums do not depend on the order
		h.add(v, n)
	}
}

// bins lists the values that occur, least first.
func (h histogram) bins() []Bin {
	out := make([]Bin, 0, len(h))
	for _, v := range slices.Sorted(maps.Keys(h)) {
		out = append(out, Bin{v, h[v]})
	}
	return out
}

// total returns how many numbers were counted, and their sum.
func (h histogram) total() (n, sum int) {
	for v, c := range h {
		n, sum = n+c, sum+v*c
	}
	return n, sum
}
