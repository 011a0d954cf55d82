package reward

import "github.com/ropewalk/ropewalk/rl/choice"

// ARLArena's reward is what the environment pays, over all turns. Each environment states its own numbers. What an
// invalid action costs is part of the advantage (advantage.invalid_penalty).
//
// Source: ARLArena §3.1 (2) and Table S1. Departure: the paper subtracts the penalty from the final reward, its
// release from the turn's own row, as here.

var arlarena = Declaration{
	Choice: choice.Choice{
		Name: "arlarena", Doc: "the environment's own outcome", Source: "ARLArena §3.2",
		Settings: environmentReward{}, Reads: choice.Reading("symbolic"),
	},
	// The outcome of mathematics with a tool: the last box agrees, wherever in the text it is.
	Compare: func(t Trajectory, o Options) Outcome {
		return GradeLastBox(t.Text, t.Gold, o)
	},
}

// environmentReward is what an interactive environment paid over all turns; of a question the outcome's reward.
type environmentReward struct{}

// Score is the sum of what was paid, or the outcome's reward.
func (environmentReward) Score(t Trajectory, o Outcome) (float64, error) {
	if t.Played != nil {
		return t.Played.Paid, nil
	}
	return o.Reward, nil
}
