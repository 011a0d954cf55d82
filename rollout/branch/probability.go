package branch

import (
	"math"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Rule is AEPO's entropy-balanced branching:
//
//	P = clip((Base + EntropyWeight·ΔH)(1 − Slope·l), 0, 1),  branch iff P > Threshold
//
// Source: AEPO eqs 6–7 and Algorithm 1. Departures: eq 6's P may leave [0, 1], and is clipped as in
// the release; Base is a fresh uniform number at every decision, as released, unless FixedBase is
// set (a fixed 0.5 would never branch on a falling entropy).
type Rule struct {
	EntropyWeight float64    // γ of eq 6
	Slope         float64    `min:"0"`         // of the penalty P̂(l) = Slope·l
	Threshold     float64    `min:"0" max:"1"` // τ
	AtThreshold   bool       // branch at P = Threshold too (the release)
	FixedBase     *float64   `min:"0" max:"1"`
	Copies        int        `min:"0"` // Z, branches a decision opens; 1 when 0
	Streak        StreakRule `enum:"branches|passes"`
}

// PaperRule holds the constants of the paper, ReleaseRule those of its release.
var (
	PaperRule   = Rule{EntropyWeight: 0.2, Slope: 0.2, Threshold: 0.5}
	ReleaseRule = Rule{EntropyWeight: 0.2, Slope: 0.05, Threshold: 0.5, AtThreshold: true}
)

// Validate reports the first bad field.
func (r Rule) Validate() error { return choice.Check("branch.", r) }

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
	Threshold     float64 `min:"0" max:"1"`
	Copies        int     `min:"0"` // branches a decision opens; 1 when 0
}

// DefaultARPO holds the release's constants.
var DefaultARPO = ARPO{EntropyWeight: 0.2, Threshold: 0.5}

// Validate reports the first bad field.
func (a ARPO) Validate() error { return choice.Check("arpo.", a) }

// Probability is P for a uniform number and an entropy change.
func (a ARPO) Probability(uniform, change float64) float64 {
	return clip01(uniform - a.EntropyWeight*change)
}

// Branches reports whether a probability branches.
func (a ARPO) Branches(p float64) bool { return p <= a.Threshold }

func clip01(p float64) float64 { return math.Min(math.Max(p, 0), 1) }
