package diagnose

// Importance ratios out of bounds, split by the sign of the advantage and the side. Of all tokens
// under the mask (or all rows, where the ratio is a sequence's) the shares with
//
//	low&neg   A < 0, r < 1 − ε_low       high&neg  A < 0, r > 1 + ε_high
//	low&pos   A > 0, r < 1 − ε_low       high&pos  A > 0, r > 1 + ε_high
//
// A clip acts only on low&neg and high&pos; their sum is the effective clip. The dual clip acts
// if A < 0 and r > C. Sources: ARLArena figure 4 (a, b); dual clip (Ye et al. 2020); GSPO's
// sequence ratio s = exp(mean(logp − old)). Departures: A = 0 is in the denominator and on no
// side; log-ratios are clamped as in the losses, ±20 by token and at most 10 by sequence.

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/rl/internal/exact"
)

// RatioBounds is the interval [1−Low, 1+High] of the clip.
type RatioBounds struct {
	Low, High float64 // ε, 0 ≤ Low ≤ 1 and 0 ≤ High
	Dual      float64 // C > 1; 0: no dual clip
}

// DefaultRatioBounds are those of PPO with the usual dual clip.
var DefaultRatioBounds = RatioBounds{Low: 0.2, High: 0.2, Dual: 3}

// Validate reports the first bad field.
func (b RatioBounds) Validate() error {
	switch {
	case !(b.Low >= 0 && b.Low <= 1):
		return fmt.Errorf("low must lie in [0, 1], got %g", b.Low)
	case !(b.High >= 0) || math.IsInf(b.High, 0):
		return fmt.Errorf("high must be finite and not negative, got %g", b.High)
	case b.Dual != 0 && !(b.Dual > 1) || math.IsInf(b.Dual, 0):
		return fmt.Errorf("dual must be 0 or finite and > 1, got %g", b.Dual)
	}
	return nil
}

// Ratios gathers a step's ratios.
type Ratios struct {
	bounds RatioBounds
	counts RatioCounts
	ratios series
}

// RatioCounts counts ratios out of bounds.
type RatioCounts struct{ Total, LowNegative, LowPositive, HighNegative, HighPositive, Dual int }

// RatioReport holds the shares; all are 0 without ratios.
type RatioReport struct {
	Counts                                               RatioCounts
	LowNegative, LowPositive, HighNegative, HighPositive float64
	EffectiveClip                                        float64 // LowNegative + HighPositive
	DualClip                                             float64
	Ratio                                                Spread // of the ratios themselves
}

// NewRatios returns an empty gathering.
func NewRatios(bounds RatioBounds) (*Ratios, error) {
	if err := bounds.Validate(); err != nil {
		return nil, fmt.Errorf("ratio bounds: %w", err)
	}
	return &Ratios{bounds: bounds}, nil
}

// Add adds ratios > 0, of tokens or of rows, with the advantage of each.
func (r *Ratios) Add(ratios, advantages []float64) error {
	if len(ratios) != len(advantages) {
		return fmt.Errorf("%w: %d ratios and %d advantages", ErrBadInput, len(ratios), len(advantages))
	}
	for i, v := range ratios {
		if !(v >= 0) || !usable(v) {
			return fmt.Errorf("%w: ratio %d is %g", ErrBadInput, i, v)
		}
	}
	if err := checkValues("advantage", advantages); err != nil {
		return err
	}
	for i, v := range ratios {
		r.add(v, advantages[i])
	}
	return nil
}

// AddTokens adds the ratio of every token under the mask, by LogProbs, Old and Advantages.
func (r *Ratios) AddTokens(rows ...Row) error {
	if err := checkPolicyRows(rows); err != nil {
		return err
	}
	for _, row := range rows {
		for t, m := range row.Mask {
			if m == 1 {
				r.add(tokenRatio(row, t), row.Advantages[t])
			}
		}
	}
	return nil
}

// AddSequences adds the sequence ratio of every live row with its mean advantage.
func (r *Ratios) AddSequences(rows ...Row) error {
	if err := checkPolicyRows(rows); err != nil {
		return err
	}
	for _, row := range rows {
		if s, a, live := sequenceRatio(row); live {
			r.add(s, a)
		}
	}
	return nil
}

func (r *Ratios) add(ratio, advantage float64) {
	c, low, high := &r.counts, ratio < 1-r.bounds.Low, ratio > 1+r.bounds.High
	c.Total++
	r.ratios.add(ratio)
	switch {
	case advantage < 0 && low:
		c.LowNegative++
	case advantage < 0 && high:
		c.HighNegative++
	case advantage > 0 && low:
		c.LowPositive++
	case advantage > 0 && high:
		c.HighPositive++
	}
	if r.bounds.Dual != 0 && advantage < 0 && ratio > r.bounds.Dual {
		c.Dual++
	}
}

// Merge adds another shard's ratios, which must have been held to the same bounds.
func (r *Ratios) Merge(o *Ratios) error {
	if r.bounds != o.bounds {
		return fmt.Errorf("%w: merge ratios with the bounds %+v and %+v", ErrBadInput, r.bounds, o.bounds)
	}
	c := &r.counts
	c.Total += o.counts.Total
	c.LowNegative += o.counts.LowNegative
	c.LowPositive += o.counts.LowPositive
	c.HighNegative += o.counts.HighNegative
	c.HighPositive += o.counts.HighPositive
	c.Dual += o.counts.Dual
	r.ratios.merge(&o.ratios)
	return nil
}

// Report returns the shares.
func (r *Ratios) Report() RatioReport {
	c := r.counts
	return RatioReport{
		Counts:        c,
		LowNegative:   share(c.LowNegative, c.Total),
		LowPositive:   share(c.LowPositive, c.Total),
		HighNegative:  share(c.HighNegative, c.Total),
		HighPositive:  share(c.HighPositive, c.Total),
		EffectiveClip: share(c.LowNegative+c.HighPositive, c.Total),
		DualClip:      share(c.Dual, c.Total),
		Ratio:         r.ratios.spread(),
	}
}

const (
	tokenClamp    = 20 // of a token's log-ratio, both ways
	sequenceClamp = 10 // of a row's mean log-ratio, upwards
)

// checkPolicyRows reports the first row without usable log-probabilities and advantages.
func checkPolicyRows(rows []Row) error {
	for i, r := range rows {
		if err := r.check(i, r.logProbs(), r.old(), r.advantages()); err != nil {
			return err
		}
	}
	return nil
}

// tokenRatio is exp(logp − old).
func tokenRatio(r Row, t int) float64 {
	return math.Exp(min(max(r.LogProbs[t]-r.Old[t], -tokenClamp), tokenClamp))
}

// sequenceRatio is exp of the mean log-ratio, with the mean advantage; a dead row has neither.
func sequenceRatio(r Row) (ratio, advantage float64, live bool) {
	logs, advantages, n := exact.Sum{}, exact.Sum{}, 0
	for t, m := range r.Mask {
		if m == 1 {
			n++
			logs.Add(r.LogProbs[t] - r.Old[t])
			advantages.Add(r.Advantages[t])
		}
	}
	if n == 0 {
		return 0, 0, false
	}
	return math.Exp(min(over(logs.Value(), n), sequenceClamp)), over(advantages.Value(), n), true
}
