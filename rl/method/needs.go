package method

import (
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Need is what a choice requires from the pipeline beyond sampled tokens and rewards.
type Need = choice.Need

// The needs.
const (
	NeedOldLogProbs      = choice.NeedOldLogProbs
	NeedRolloutLogProbs  = choice.NeedRolloutLogProbs
	NeedReference        = choice.NeedReference
	NeedEntropies        = choice.NeedEntropies
	NeedValues           = choice.NeedValues
	NeedCurrentEntropies = choice.NeedCurrentEntropies
	NeedMinibatch        = choice.NeedMinibatch
	NeedTurnRows         = choice.NeedTurnRows
	NeedReplay           = choice.NeedReplay
)

// Needs is the union over a method's choices.
type Needs struct {
	OldLogProbs      bool
	RolloutLogProbs  bool
	Reference        bool
	Entropies        bool
	Values           bool
	CurrentEntropies bool
	Minibatch        bool
	TurnRows         bool
	Replay           bool
}

// Forward reports whether any token output must be computed between sampling and advantage.
func (n Needs) Forward() bool { return n.OldLogProbs || n.Reference || n.Entropies || n.Values }

// Critic reports whether there is a value function to train.
func (n Needs) Critic() bool { return n.Values }

// Needs returns what the method asks of a pipeline.
func (m Method) Needs() Needs {
	var all []Need
	for _, p := range m.Picks() {
		if c, ok := p.choice(); ok {
			all = append(all, c.Needs...)
		}
	}
	has := func(n Need) bool { return slices.Contains(all, n) }
	return Needs{
		OldLogProbs: has(NeedOldLogProbs), RolloutLogProbs: has(NeedRolloutLogProbs), Reference: has(NeedReference),
		Entropies: has(NeedEntropies), Values: has(NeedValues), CurrentEntropies: has(NeedCurrentEntropies),
		Minibatch: has(NeedMinibatch), TurnRows: has(NeedTurnRows), Replay: has(NeedReplay),
	}
}
