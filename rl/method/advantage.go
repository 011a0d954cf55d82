package method

import (
	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/rl/choice"
)

// Advantage chooses the estimator.
type Advantage struct {
	Name string `json:"name" required:"true" doc:"the advantage estimator"`
	// Params are the parameters of the estimator. Each estimator declares its own in rl/advantage.
	Params       choice.Params `params:"advantage.name"`
	EntropyAware *EntropyAware `json:"entropy_aware" doc:"AEPO's factor 1 + weight·z of each token's standardised entropy; null or absent = off"`
	// Prefixes says what tokens count that several leaves of a tree share.
	Prefixes string `json:"prefixes" default:"per_leaf" enum:"per_leaf|mean_per_leaf|mean_once" quiet:"true" doc:"what a token counts that several trajectories of rollout.tree share: in each of them with its advantage (AEPO eq. 10); in each with the mean of their advantages; or once, with that mean, which changes the scale of the loss and what it is divided by. Statistics of entropies count the same tokens"`
}

// The values of Advantage.Prefixes. "" is PrefixesPerLeaf.
const (
	PrefixesPerLeaf     = "per_leaf"
	PrefixesMeanPerLeaf = "mean_per_leaf"
	PrefixesMeanOnce    = "mean_once"
)

// SharesPrefixes reports whether the tokens that trajectories share have one advantage.
func (a Advantage) SharesPrefixes() bool {
	return a.Prefixes == PrefixesMeanPerLeaf || a.Prefixes == PrefixesMeanOnce
}

// InvalidPenalty is taken from the score of an invalid turn; 0 where the estimator reads no such parameter.
func (a Advantage) InvalidPenalty() float64 {
	penalty, _ := a.Params["invalid_penalty"].(float64)
	return penalty
}

// perTrajectory reports that statistics run over one row of each trajectory.
func (a Advantage) perTrajectory() bool {
	return a.Params["stats"] == string(advantage.StatsPerTrajectory)
}

// EntropyAware scales each token's advantage by its standardised entropy (AEPO eq 11).
type EntropyAware struct {
	Weight float64 `json:"weight" default:"0.2" above:"0" max:"100" doc:"a of 1 + a·z"`
	Scope  string  `json:"scope" default:"group" enum:"group|trajectory|batch" doc:"the tokens whose mean and deviation standardise an entropy"`
	Form   string  `json:"form" default:"linear" enum:"linear|power" doc:"1 + a·z, or max(1 + z, 0)^a as AEPO's Algorithm 2 writes"`
}
