package loss

import (
	"fmt"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Sequence masking (GRPO_SM, SAPO_SM, CISPO_SM; ARLArena S11, after DeepSeek-V3.2's off-policy mask):
// a row leaves the policy loss if its advantage is negative and the policy has moved away from it,
//
//	keep iff A_i ≥ 0 or (1/T_i) Σ_t (old_logp − logp) ≤ δ
//
// where A_i is the mean over the row's tokens, old_logp is Old (the proximal policy, not the sampler's) and the
// log-ratio is not clamped. Penalties (KL, entropy) keep the row. In the formula the denominator ΣT_i still counts the
// row (fixed). Released code divides by the counts of the kept rows (shrink), which are known only after the whole
// mini-batch was seen: see Prepare.

var sequenceMaskTerm = Term{Choice: choice.Choice{
	Name: "sequence_mask", Doc: "rows with a negative advantage that the policy has moved away from are left out",
	Source: "ARLArena Table 1, M_i",
	Field: "leave out rows with a negative advantage that the policy has moved away from; null or absent = " +
		"off",
	Dimension: choice.ImportanceClip,
	Settings:  SequenceMaskSettings{Delta: 0.003, Denominator: "fixed"},
}}

// SequenceMaskSettings are those of a recipe: it keeps row i iff A_i ≥ 0 or (1/T_i) Σ m(old − logp) ≤ Delta.
type SequenceMaskSettings struct {
	Delta       float64 `json:"delta" min:"0" max:"1000" doc:"greatest mean fall of the log-probabilities that a row with a negative advantage may show"`
	Denominator string  `json:"denominator" enum:"fixed|shrink" doc:"aggregation counts the rows left out (fixed), or not (shrink)"`
}

// Add puts the mask into the objective.
func (s SequenceMaskSettings) Add(o *Objective, _ Step) {
	o.SequenceMask = &SequenceMask{Delta: s.Delta, Shrink: s.Denominator == "shrink"}
}

// SequenceMask drops rows from a policy loss. It composes with any surrogate.
type SequenceMask struct {
	Delta  float64 // δ ≥ 0
	Shrink bool    // divide by the counts of the kept rows
}

// Validate reports the first bad field.
func (m SequenceMask) Validate() error {
	if !(m.Delta >= 0) {
		return fmt.Errorf("sequence_mask delta must be ≥ 0, got %g", m.Delta)
	}
	return nil
}

// Keep says whether a row stays, from its mean advantage and mean log-ratio.
func (m SequenceMask) Keep(advantage, logRatio float64) bool {
	return advantage >= 0 || -logRatio <= m.Delta
}

// rowMeans returns a row's mean advantage and mean log-ratio; 0 for a dead row.
func rowMeans[T Float](r Row[T]) (advantage, logRatio float64) {
	n := 0
	for t, m := range r.Mask {
		if m != 0 {
			advantage += float64(r.Advantages[t])
			logRatio += float64(r.LogProbs[t]) - float64(r.Old[t])
			n++
		}
	}
	if n == 0 {
		return 0, 0
	}
	return advantage / float64(n), logRatio / float64(n)
}
