package recipes

import "github.com/ropewalk/ropewalk/schema/stages"

// Outputs names the values that the models compute for each kept token between resampling and advantages, in addition
// to what the rollout recorded.
type Outputs struct {
	OldLogProbs bool // log-probs under the policy before the update, computed by the engine that trains
	Entropies   bool // entropies under the same policy
	Reference   bool // log-probs under the reference policy
	Values      bool // values of the critic
}

// TokenOutputs asks for per-token outputs that the method itself does not need.
type TokenOutputs struct {
	Entropies bool `json:"entropies" default:"false" doc:"entropies under the policy before the update"`
	Reference bool `json:"reference" default:"false" doc:"log-probabilities under the reference policy"`
}

// Outputs returns the outputs that the recipe needs. Most recipes need none.
func (r *Recipe) Outputs() Outputs {
	needs := r.Method().Needs()
	o := Outputs{OldLogProbs: needs.OldLogProbs, Entropies: needs.Entropies, Reference: needs.Reference,
		Values: needs.Values}
	if more := r.TokenOutputs; more != nil {
		o.Entropies, o.Reference = o.Entropies || more.Entropies, o.Reference || more.Reference
	}
	return o
}

// Any reports whether any output is needed.
func (o Outputs) Any() bool { return o != Outputs{} }

// Needs returns which optional stages the recipe needs.
func (r *Recipe) Needs() stages.Needs {
	return stages.Needs{Grade: r.Reward.Graded(), Judge: r.Reward.Judged(), Function: r.Reward.Called(),
		Logprobs: r.Outputs().Any(), ReplayBuffer: r.Replay != nil, Data: r.Data != nil,
		Difficulty: r.Data != nil && r.Data.Difficulty != nil, Initial: r.Forms()}
}
