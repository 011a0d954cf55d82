package choice

import "maps"

// Choice is what a loss, an estimator, a reward, a filter, … states about itself.
type Choice struct {
	Name   string // as recipes spell it
	Doc    string // one line, without a full stop
	Source string // paper and equation
	// Field says what the recipe field of a switch is; Only names the environments that have the field, as the tag
	// only does. Other choices leave both empty.
	Field, Only string
	Dimension   Dimension // of a switch; other choices have that of their slot
	// Settings is a struct whose tags describe the parameters and whose fields hold their defaults; nil = no
	// parameters.
	Settings any
	// Reads are further fields of the recipe's section that the choice reads. Package method declares these fields,
	// because every choice of the section or none of them owns them.
	Reads []Param
	// Rules refuse values of the parameters that make no sense together.
	Rules []Rule
	// Example holds the settings that tests and benchmarks use; nil = the defaults.
	Example any
	Needs   []Need
}

// Dimension is one of the four by which ARLArena sorts methods; "" where they do not cover a choice.
type Dimension string

// The dimensions.
const (
	LossAggregation  Dimension = "loss aggregation"
	ImportanceClip   Dimension = "importance-sampling clip"
	DynamicFiltering Dimension = "dynamic filtering"
	AdvantageDesign  Dimension = "advantage design"
)

// Rule refuses values of a choice's parameters that are within their limits and still make no sense.
type Rule struct {
	Param string   // the parameter to blame
	Reads []string // the other fields of the section that the rule reads
	Doc   string   // what must hold, in words
	// Fault says why the parameters break the rule; "" = they do not. It gets every parameter of the choice.
	Fault func(Params) string
}

// Fault says why parameters break the rule of a choice that blames the given parameter with the given words; "" = they
// do not, or the choice has no such rule. Parameters that are not set have their defaults.
func (c Choice) Fault(param, doc string, set Params) string {
	all := Values(c.Settings)
	maps.Copy(all, set)
	for _, r := range c.Rules {
		if r.Param == param && r.Doc == doc {
			return r.Fault(all)
		}
	}
	return ""
}

// Param names a field that a choice reads.
type Param struct {
	Name    string `json:"name"`
	Default string `json:"default,omitempty"` // as YAML; "" = the field's own default
}

// Need is something that a choice requires from the training step beyond sampled tokens and rewards.
type Need string

// The needs.
const (
	NeedOldLogProbs      Need = "old_log_probs"     // recomputed by the trainer before the first update
	NeedRolloutLogProbs  Need = "rollout_log_probs" // those of the sampling engine, in addition to recomputed ones
	NeedReference        Need = "reference"         // log-probabilities under the reference policy
	NeedEntropies        Need = "entropies"         // entropies of the policy before the first update
	NeedValues           Need = "values"            // a critic, and its values before the first update
	NeedCurrentEntropies Need = "current_entropies" // entropies of the policy in each update, with their gradients
	NeedMinibatch        Need = "minibatch"         // the whole mini-batch before the loss of any row
	NeedTurnRows         Need = "turn_rows"         // one row for each turn, with observations and validity
	NeedReplay           Need = "replay"            // state that outlives the step
)

// Reading lists fields that a choice reads with their own defaults.
func Reading(names ...string) []Param {
	out := make([]Param, len(names))
	for i, n := range names {
		out[i] = Param{Name: n}
	}
	return out
}
