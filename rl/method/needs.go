package method

import "slices"

// Need is what a choice asks of the pipeline beyond sampled tokens and rewards.
type Need string

// The needs.
const (
	NeedOldLogProbs      Need = "old_log_probs"     // recomputed by the trainer before the first update
	NeedRolloutLogProbs  Need = "rollout_log_probs" // the sampling engine's, beside recomputed ones
	NeedReference        Need = "reference"         // log-probabilities under the reference policy
	NeedEntropies        Need = "entropies"         // of the policy before the first update
	NeedValues           Need = "values"            // a critic, and its values before the first update
	NeedCurrentEntropies Need = "current_entropies" // of the policy in each update, with their gradients
	NeedMinibatch        Need = "minibatch"         // the whole mini-batch before any row's loss
	NeedTurnRows         Need = "turn_rows"         // rows by turn, with observations and validity
	NeedReplay           Need = "replay"            // state that outlives the step
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
