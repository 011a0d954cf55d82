package loss

import (
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// The sources of the log-probabilities in the ratio's denominator.
const (
	OldFromRollout = "rollout"
	OldRecomputed  = "recompute"
)

// OldLogProbs lists the sources of the ratio's denominator that recipes can name.
func OldLogProbs() []choice.Choice { return slices.Clone(oldLogProbs) }

var oldLogProbs = []choice.Choice{
	{Name: OldFromRollout, Doc: "what the engine that sampled reported", Source: "PPO"},
	{
		Name: OldRecomputed, Doc: "the trainer's own, before the step's first update",
		Source: "verl; every paper's runs", Needs: []choice.Need{choice.NeedOldLogProbs},
	},
}
