package loss

import "fmt"

// Sequence masking (GRPO_SM, SAPO_SM, CISPO_SM; ARLArena S11, after DeepSeek-V3.2's off-policy mask):
// a row leaves the policy loss if its advantage is negative and the policy has moved away from it,
//
//	keep iff A_i ≥ 0 or (1/T_i) Σ_t (old_logp − logp) ≤ δ
//
// with A_i the mean over the row's tokens and the log-ratio not clamped. Penalties (KL, entropy) keep
// the row. The formula leaves ΣT_i as it was (fixed); released code divides by the kept rows' counts
// (shrink), which are known only when the whole mini-batch has been seen: see Prepare.

// SequenceMask drops rows from a policy loss. It composes with any surrogate.
type SequenceMask struct {
	Delta  float64 // δ ≥ 0
	Shrink bool    // divide by what is kept
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

// rowMeans gives a row's mean advantage and mean log-ratio; 0 of a dead row.
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
