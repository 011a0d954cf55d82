package loss

// GPG (Chu et al. 2025): the plain policy gradient,
//
//	ℓ = −A·logp
//
// without a ratio: the old log-probabilities are read for statistics alone. Further mini-batches of a step are
// off policy and nothing bounds that. The value depends on logp itself and compares with no other loss's.

// GPG is −A·logp.
type GPG struct{}

// Name is "gpg".
func (GPG) Name() string { return "gpg" }

// Validate accepts it.
func (GPG) Validate() error { return nil }

// Inputs are the advantages.
func (GPG) Inputs() Inputs { return Behaviour }

// Bounds are none.
func (GPG) Bounds() Bounds { return Bounds{} }

// Evaluate writes the block's losses and coefficients.
func (GPG) Evaluate(b *Block) {
	copy(b.Coef, b.Advantages)
	scaleLoop(b.Coef, -1)
	mulLoop(b.Loss, b.Coef, b.LogProbs)
}
