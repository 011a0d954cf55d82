package reward

import (
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// ARLArena's rewards. The environment pays, and a turn whose action is invalid costs:
//
//	ALFWorld  10·won                                          on the last turn
//	WebShop   10 if the episode is done with task score 1     on the last turn
//	Sokoban   −0.1 a step, ±1 a box on or off a target, +10 solved   on each turn
//	row k     r_k − 0.1·1[the action of turn k is invalid]
//
// Source: ARLArena §3.1 (2) and Table S1, its environments' ports for the numbers. Departure: the
// paper subtracts the penalty from the final reward, its release from the turn's own row, as here. If a trajectory is
// one row, the sum of its rows is the paper's reading.

var arlarena = Declaration{
	Choice: choice.Choice{
		Name: "arlarena", Doc: "the environment's own outcome", Source: "ARLArena §3.2",
		Settings: environmentReward{}, Reads: choice.Reading("symbolic"),
	},
	// The outcome of mathematics with a tool: the last box agrees, wherever in the text it is.
	Compare: func(t Trajectory, o Options) Outcome {
		return RStar2{Options: o, WholeText: true}.Reward(t.Text, t.Gold)
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

const (
	arenaPenalty = 0.1

	sokobanStep   = -0.1
	sokobanBox    = 1
	sokobanSolved = 10
)

// SokobanMove is what one move did.
type SokobanMove struct {
	OnTarget, OffTarget int // boxes pushed onto and off targets
	Solved              bool
}

// Reward is what the move earns.
func (m SokobanMove) Reward() float64 {
	return sokobanStep + sokobanBox*float64(m.OnTarget-m.OffTarget) + sokobanSolved*indicator(m.Solved)
}

// TurnRewards turns what an environment paid into the rewards of turn rows, as one choice of a
// method.
type TurnRewards struct {
	Penalty        float64 // for a turn whose action is invalid; 0 means 0.1
	WithoutPenalty bool
}

// Validate names a field out of range.
func (t TurnRewards) Validate() error {
	if !(t.Penalty >= 0) || math.IsInf(t.Penalty, 0) {
		return fmt.Errorf("turn rewards: penalty must be finite and not negative, got %g", t.Penalty)
	}
	if t.WithoutPenalty && t.Penalty != 0 {
		return fmt.Errorf("turn rewards: penalty is %g, and penalties are off", t.Penalty)
	}
	return nil
}

// Rows gives the reward of each turn of one trajectory. paid[k] is what the environment paid for
// turn k (see LastTurn where it pays at the end), valid[k] whether its action was valid. No turns
// give no rows.
func (t TurnRewards) Rows(paid []float64, valid []bool) ([]float64, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if len(paid) != len(valid) {
		return nil, fmt.Errorf("turn rewards: %d rewards and %d validities", len(paid), len(valid))
	}
	penalty := t.Penalty
	if penalty == 0 && !t.WithoutPenalty {
		penalty = arenaPenalty
	}
	out := slices.Clone(paid)
	for k, r := range paid {
		if math.IsNaN(r) || math.IsInf(r, 0) {
			return nil, fmt.Errorf("turn rewards: turn %d has %g", k, r)
		}
		if !valid[k] {
			out[k] -= penalty
		}
	}
	return out, nil
}

// LastTurn returns the rewards of turns of which the last one earns the outcome and the others 0.
func LastTurn(outcome float64, turns int) []float64 {
	if turns <= 0 {
		return nil
	}
	out := make([]float64, turns)
	out[turns-1] = outcome
	return out
}
