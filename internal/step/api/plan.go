package api

import "github.com/ropewalk/ropewalk/schema/stages"

// Plan holds what a workflow needs to know of the resolved recipe.
type Plan struct {
	Recipe        string  `json:"recipe"`
	Seed          uint64  `json:"seed"`
	Steps         int     `json:"steps"`
	Shards        int     `json:"shards"`
	MaxTurns      int     `json:"max_turns"`
	EvaluateEvery int     `json:"evaluate_every"`
	SandboxWall   float64 `json:"sandbox_wall"` // longest time for one call, in seconds
	BatchRows     int     `json:"batch_rows"`   // trajectories sampled in each step
	// Chain describes for people what the stage resample runs, in order.
	Chain string `json:"chain,omitempty"`
	// Dynamic is set if the step is sampled in rounds.
	Dynamic *Dynamic `json:"dynamic,omitempty"`
	// Needs decides which of the optional stages run.
	stages.Needs
	// Hosts is how many hosts share the run's models, if there are several.
	Hosts int `json:"hosts,omitempty"`
	// Interleaved says that one activity takes a shard from its prompts to its rewards.
	Interleaved bool `json:"interleaved,omitempty"`
	// Summaries says that the calls of tools use the run's models.
	Summaries bool `json:"summaries,omitempty"`
	// Compact says that each step's small shards are merged alongside the next step.
	Compact bool `json:"compact,omitempty"`
	// Staleness is the lag of the policy that samples, in updates; 0 = the policy that is updated samples.
	Staleness int `json:"staleness,omitempty"`
	// Evaluations says when policies are measured: EvaluateAlongside or EvaluateBetween.
	Evaluations string `json:"evaluations,omitempty"`
	// PromptsAhead says that a step's prompts do not depend on the steps before it, so that they can be selected while
	// the step before runs.
	PromptsAhead bool `json:"prompts_ahead,omitempty"`
	// Finish says that one activity updates the policy and publishes it.
	Finish bool `json:"finish,omitempty"`
}

// Values of Plan.Evaluations.
const (
	EvaluateAlongside = "alongside" // of the next step, once that has sampled
	EvaluateBetween   = "between"   // steps, because the engine that generates also trains
)

// Dynamic holds what a step needs to know of dynamic sampling. Each round has Plan.Shards shards.
type Dynamic struct {
	Target    int `json:"target"` // informative groups
	Tries     int `json:"tries"`  // maximum number of rounds
	ColdStart int `json:"cold_start,omitempty"`
}

// Enough reports whether a step stops sampling after the given number of rounds, with the given number of informative
// groups in them. Steps count from 1.
func (d Dynamic) Enough(step, rounds, informative int) bool {
	return rounds >= d.Tries || step <= d.ColdStart || informative >= d.Target
}
