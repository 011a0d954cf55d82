package experiment

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/ropewalk/ropewalk/internal/seed"
)

// confidence is that of all intervals, and level what the corrected p values are compared with.
const (
	confidence = 0.95
	level      = 1 - confidence
	power      = 0.8 // of which SeedsNeeded speaks
)

// tiny is the share of the mean below which a standard deviation is a trace of rounding.
const tiny = 1e-12

// resamples is how many times a bootstrap interval is drawn.
const resamples = 10_000

// interval holds the bounds of an interval.
type interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// sample sums up values, such as differences paired by seed. Intervals, P and SeedsNeeded are nil where there are fewer
// than two values or, P and SeedsNeeded, where all values are equal.
type sample struct {
	N         int       `json:"n"`
	Mean      float64   `json:"mean"`
	SD        float64   `json:"sd"` // of a value, with n − 1
	T         *interval `json:"t_interval"`
	Bootstrap *interval `json:"bootstrap_interval"`
	// P is the probability of a mean at least as far from 0 if the true mean is 0, by Student's t.
	P *float64 `json:"p"`
	// SeedsNeeded is how many values a t test needs to tell the mean from 0 with a power of 80%, if mean and SD are the
	// true ones.
	SeedsNeeded *int `json:"seeds_needed"`
}

// sampleOf sums up values in any order.
func sampleOf(values []float64) sample {
	values = slices.Sorted(slices.Values(values)) // so that the order changes no draw and no rounding
	s := student(values)
	if s.N < 2 {
		return s
	}
	s.Bootstrap = bootstrap(values)
	if s.SD > tiny*math.Abs(s.Mean) {
		t := distuv.StudentsT{Sigma: 1, Nu: float64(s.N - 1)}
		s.P = new(2 * t.Survival(math.Abs(s.Mean)*math.Sqrt(float64(s.N))/s.SD))
		s.SeedsNeeded = needed(math.Abs(s.Mean) / s.SD)
	}
	return s
}

// student is the part of a sample that Student's t interval is made of.
func student(values []float64) (s sample) {
	s.N = len(values)
	n := float64(s.N)
	for _, v := range values {
		s.Mean += v / n
	}
	if s.N < 2 {
		return s
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - s.Mean) * (v - s.Mean)
	}
	s.SD = math.Sqrt(squares / (n - 1))
	t := distuv.StudentsT{Sigma: 1, Nu: n - 1}
	half := t.Quantile((1+confidence)/2) * s.SD / math.Sqrt(n)
	s.T = &interval{s.Mean - half, s.Mean + half}
	return s
}

// bootstrap is the percentile interval of the mean: the values are drawn with replacement, as many as there are.
func bootstrap(values []float64) *interval {
	draw := seed.Rand("experiment/bootstrap", uint64(len(values)))
	means := make([]float64, resamples)
	for i := range means {
		for range values {
			means[i] += values[draw.IntN(len(values))] / float64(len(values))
		}
	}
	slices.Sort(means)
	at := func(q float64) float64 { return means[int(math.Round(q*float64(resamples-1)))] }
	return &interval{at(level / 2), at(1 - level/2)}
}

// mostNeeded ends the search for a number of seeds.
const mostNeeded = 10_000

// needed is the least n at which an effect, in standard deviations, reaches the sum of the t quantiles of the level and
// of the power; nil if that is more than mostNeeded.
func needed(effect float64) *int {
	n := 2 + sort.Search(mostNeeded, func(i int) bool {
		t := distuv.StudentsT{Sigma: 1, Nu: float64(i + 1)}
		return effect*math.Sqrt(float64(i+2)) >= t.Quantile(1-level/2)+t.Quantile(power)
	})
	if n > mostNeeded {
		return nil
	}
	return &n
}

// holm corrects p values for their number (Holm 1979): all of them together are wrong with at most the probability that
// the greatest corrected one allows. Nil values are no tests.
func holm(p []*float64) []*float64 {
	out := make([]*float64, len(p))
	var tests []int
	for i := range p {
		if p[i] != nil {
			tests = append(tests, i)
		}
	}
	slices.SortStableFunc(tests, func(a, b int) int {
		switch {
		case *p[a] < *p[b]:
			return -1
		case *p[a] > *p[b]:
			return 1
		}
		return 0
	})
	most := 0.0
	for rank, i := range tests {
		most = max(most, min(1, *p[i]*float64(len(tests)-rank)))
		out[i] = new(most)
	}
	return out
}
