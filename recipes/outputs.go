package recipes

// Outputs are what the models make of each kept token between resampling and advantages, beyond what
// the rollout recorded.
type Outputs struct {
	OldLogProbs bool // of the policy before the update, by the engine that updates
	Entropies   bool // of the same
	Reference   bool // log-probabilities of the reference policy
	Values      bool // of the critic
}

// TokenOutputs asks for per-token outputs that the method itself does not need.
type TokenOutputs struct {
	Entropies bool `json:"entropies" default:"false" doc:"entropies under the policy before the update"`
	Reference bool `json:"reference" default:"false" doc:"log-probabilities under the reference policy"`
}

// Outputs returns what the recipe needs; mostly nothing.
func (r *Recipe) Outputs() Outputs {
	needs := r.Method().Needs()
	o := Outputs{OldLogProbs: needs.OldLogProbs, Entropies: needs.Entropies, Reference: needs.Reference, Values: needs.Values}
	if more := r.TokenOutputs; more != nil {
		o.Entropies, o.Reference = o.Entropies || more.Entropies, o.Reference || more.Reference
	}
	return o
}

// Any reports whether anything is needed.
func (o Outputs) Any() bool { return o != Outputs{} }
