package branch

import (
	"fmt"
	"math"
	"slices"
)

// Rule is AEPO's entropy-balanced branching:
//
//	P = clip((Base + EntropyWeight·ΔH)(1 − Slope·l), 0, 1),  branch iff P > Threshold
//
// Source: AEPO eqs 6–7 and Algorithm 1. Departures: eq 6's P may leave [0, 1], and is clipped as in
// the release; Base is a fresh uniform number at every decision, as released, unless FixedBase is
// set (a fixed 0.5 would never branch on a falling entropy).
type Rule struct {
	EntropyWeight float64 // γ of eq 6
	Slope         float64 // of the penalty P̂(l) = Slope·l
	Threshold     float64 // τ
	AtThreshold   bool    // branch at P = Threshold too (the release)
	FixedBase     *float64
	Copies        int // Z, branches a decision opens; 1 when 0
	Streak        StreakRule
}

// PaperRule holds the constants of the paper, ReleaseRule those of its release.
var (
	PaperRule   = Rule{EntropyWeight: 0.2, Slope: 0.2, Threshold: 0.5}
	ReleaseRule = Rule{EntropyWeight: 0.2, Slope: 0.05, Threshold: 0.5, AtThreshold: true}
)

// Validate reports the first bad field.
func (r Rule) Validate() error {
	switch {
	case math.IsNaN(r.EntropyWeight) || math.IsInf(r.EntropyWeight, 0):
		return fmt.Errorf("branch.entropy_weight must be finite, got %g", r.EntropyWeight)
	case !(r.Slope >= 0) || math.IsInf(r.Slope, 0):
		return fmt.Errorf("branch.slope must be finite and ≥ 0, got %g", r.Slope)
	case !(r.Threshold >= 0 && r.Threshold <= 1):
		return fmt.Errorf("branch.threshold must be in [0, 1], got %g", r.Threshold)
	case r.FixedBase != nil && !(*r.FixedBase >= 0 && *r.FixedBase <= 1):
		return fmt.Errorf("branch.base must be in [0, 1], got %g", *r.FixedBase)
	case r.Copies < 0:
		return fmt.Errorf("branch.copies must be ≥ 0, got %d", r.Copies)
	case !slices.Contains([]StreakRule{"", StreakBranches, StreakPasses}, r.Streak):
		return fmt.Errorf("branch.streak must be %s or %s, got %q", StreakBranches, StreakPasses, r.Streak)
	}
	return nil
}

// Probability is P for a base, an entropy change and a streak.
func (r Rule) Probability(base, change float64, streak int) float64 {
	return clip01((base + r.EntropyWeight*change) * (1 - r.Slope*float64(streak)))
}

// Branches reports whether a probability branches.
func (r Rule) Branches(p float64) bool {
	return p > r.Threshold || r.AtThreshold && p == r.Threshold
}

// ARPO is the rule that AEPO balances: P = clip(U − Weight·ΔH, 0, 1), branch iff P ≤ Threshold, so
// that a greater ΔH branches more often; no streak matters.
//
// Source: ARPO's release (weight 0.2, threshold 0.5, 16 leaves from 8 roots). Departures: none.
type ARPO struct {
	EntropyWeight float64
	Threshold     float64
	Copies        int // branches a decision opens; 1 when 0
}

// DefaultARPO holds the release's constants.
var DefaultARPO = ARPO{EntropyWeight: 0.2, Threshold: 0.5}

// Validate reports the first bad field.
func (a ARPO) Validate() error {
	if math.IsNaN(a.EntropyWeight) || math.IsInf(a.EntropyWeight, 0) {
		return fmt.Errorf("arpo.entropy_weight must be finite, got %g", a.EntropyWeight)
	}
	if !(a.Threshold >= 0 && a.Threshold <= 1) {
		return fmt.Errorf("arpo.threshold must be in [0, 1], got %g", a.Threshold)
	}
	if a.Copies < 0 {
		return fmt.Errorf("arpo.copies must be ≥ 0, got %d", a.Copies)
	}
	return nil
}

// Probability is P for a uniform number and an entropy change.
func (a ARPO) Probability(uniform, change float64) float64 {
	return clip01(uniform - a.EntropyWeight*change)
}

// Branches reports whether a probability branches.
func (a ARPO) Branches(p float64) bool { return p <= a.Threshold }

func clip01(p float64) float64 { return math.Min(math.Max(p, 0), 1) }
