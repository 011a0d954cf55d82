package loss

// Behaviour cloning: ℓ = −logp of the tokens under the mask, the supervised loss of demonstrations.
// A row's old log-probabilities and advantages are not read, and a row of count N enters N times.

// BehaviourCloning is −logp.
type BehaviourCloning struct{}

// Name is "behaviour_cloning".
func (BehaviourCloning) Name() string { return "behaviour_cloning" }

// Validate accepts it.
func (BehaviourCloning) Validate() error { return nil }

// Inputs asks for nothing beyond the log-probabilities.
func (BehaviourCloning) Inputs() Inputs { return 0 }

// Bounds returns none: ratios have no bounds.
func (BehaviourCloning) Bounds() Bounds { return Bounds{} }

// Evaluate writes the block's losses and coefficients. If every term of an objective has a loop over runs,
// the faster loops of runs.go are used instead.
func (BehaviourCloning) Evaluate(b *Block) {
	for t, l := range b.LogProbs {
		b.Loss[t], b.Coef[t] = -l, -1
	}
}
