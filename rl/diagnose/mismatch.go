package diagnose

// How far apart two engines are that compute the same policy: what the engine that sampled said about its tokens, and
// what the engine that trains says about them, with the same weights. Of Δ_t = |log π_train(t) − log π_sample(t)| over
// all tokens under the mask: mean, 99th percentile, maximum, and the share of tokens whose probabilities differ by more
// than 1% (Δ > log 1.01).
//
// Source: the comparisons of engines in VeRL's and SGLang's notes on off-policy training. Departures: absolute
// differences, because differences of both signs cancel in a mean.

import (
	"math"

	"github.com/ropewalk/ropewalk/rl/internal/exact"
)

// beyond is the difference of log-probabilities whose probabilities differ by 1%.
var beyond = math.Log(1.01)

// Mismatch gathers the differences between two engines. The zero value has none.
type Mismatch struct {
	differences     []float64
	lowest, highest float64 // log-ratio, trainer over sampler
}

// MismatchReport describes the differences, in nats per token; all fields are 0 without tokens.
type MismatchReport struct {
	Tokens         int
	Mean, P99, Max float64
	Beyond         float64 // share of tokens whose probabilities differ by more than 1%
	// LeastRatio and GreatestRatio are extremes of the trainer's probability over the sampler's.
	LeastRatio, GreatestRatio float64
}

// Add adds rows by Mask, LogProbs (of the trainer) and Old (of the sampler). If one is refused, none is added.
func (m *Mismatch) Add(rows ...Row) error {
	for i, r := range rows {
		if err := r.check(i, r.logProbs(), r.old()); err != nil {
			return err
		}
	}
	for _, r := range rows {
		for t, mask := range r.Mask {
			if mask == 0 {
				continue
			}
			d := r.LogProbs[t] - r.Old[t]
			if len(m.differences) == 0 {
				m.lowest, m.highest = d, d
			}
			m.lowest, m.highest = min(m.lowest, d), max(m.highest, d)
			m.differences = append(m.differences, math.Abs(d))
		}
	}
	return nil
}

// Report returns the figures.
func (m *Mismatch) Report() MismatchReport {
	n := len(m.differences)
	if n == 0 {
		return MismatchReport{}
	}
	beyondOnePercent := 0
	var all exact.Moments
	for _, d := range m.differences {
		all.Add(d)
		if d > beyond {
			beyondOnePercent++
		}
	}
	return MismatchReport{
		Tokens: n, Mean: all.Mean(), P99: Percentile(m.differences, 0.99), Max: max(-m.lowest, m.highest),
		Beyond: share(beyondOnePercent, n), LeastRatio: math.Exp(m.lowest), GreatestRatio: math.Exp(m.highest),
	}
}
