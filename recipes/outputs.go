package recipes

// Outputs are what the models make of each kept token between resampling and advantages, beyond what
// the rollout recorded.
type Outputs struct {
	OldLogProbs bool // of the policy before the update, by the engine that updates
	Entropies   bool // of the same
	Reference   bool // log-probabilities of the reference policy
}

// Outputs returns what the recipe needs; mostly nothing.
func (r *Recipe) Outputs() Outputs {
	var o Outputs
	if r.Update != nil {
		o.OldLogProbs = r.Update.OldLogProbs == OldRecomputed
	}
	o.Reference = r.Loss.KL != nil
	if more := r.TokenOutputs; more != nil {
		o.Entropies, o.Reference = more.Entropies, o.Reference || more.Reference
	}
	return o
}

// Any reports whether anything is needed.
func (o Outputs) Any() bool { return o != Outputs{} }

// MinibatchRows is the number of trajectories of a mini-batch; 0 where the batch is cut by their number.
func (r *Recipe) MinibatchRows() int {
	if r.Update == nil {
		return 0
	}
	return r.Update.MinibatchRows
}

// ReferenceStep is the step whose policy is the reference of a step: 0 stands for the run's first.
func (r *Recipe) ReferenceStep(step int) int {
	if r.Reference == nil || r.Reference.RefreshEvery == 0 {
		return 0
	}
	return (step - 1) / r.Reference.RefreshEvery * r.Reference.RefreshEvery
}
