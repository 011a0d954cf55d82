package loss

import "github.com/ropewalk/ropewalk/rl/choice"

// GPG (Chu et al. 2025): the plain policy gradient,
//
//	ℓ = −A·logp
//
// without a ratio: the old log-probabilities are read only for statistics. Further mini-batches of a step are
// off policy, and nothing bounds how far. The value depends on logp itself, so it cannot be compared with that of
// another loss.

var gpg = Declaration{
	Choice: choice.Choice{
		Name: "gpg", Doc: "the plain policy gradient −A·logp, without a ratio", Source: "GPG (Chu et al. 2025)",
		Settings: GPG{},
	},
}

// GPG is −A·logp.
type GPG struct{}

// Name is "gpg".
func (GPG) Name() string { return "gpg" }

// Validate accepts it.
func (GPG) Validate() error { return nil }

// Inputs asks for the advantages and, for statistics, the old log-probabilities.
func (GPG) Inputs() Inputs { return Behaviour }

// Bounds returns none: ratios have no bounds.
func (GPG) Bounds() Bounds { return Bounds{} }

// Evaluate writes the block's losses and coefficients.
func (GPG) Evaluate(b *Block) {
	copy(b.Coef, b.Advantages)
	scaleLoop(b.Coef, -1)
	mulLoop(b.Loss, b.Coef, b.LogProbs)
}
