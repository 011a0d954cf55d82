package method

import (
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Need is what a choice requires from the pipeline beyond sampled tokens and rewards.
type Need = choice.Need

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
		OldLogProbs: has(choice.NeedOldLogProbs), RolloutLogProbs: has(choice.NeedRolloutLogProbs),
		Reference: has(choice.NeedReference), Entropies: has(choice.NeedEntropies), Values: has(choice.NeedValues),
		CurrentEntropies: has(choice.NeedCurrentEntropies), Minibatch: has(choice.NeedMinibatch),
		TurnRows: has(choice.NeedTurnRows), Replay: has(choice.NeedReplay),
	}
}
