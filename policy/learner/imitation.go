package learner

import (
	"errors"
	"math/rand/v2"

	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/schema"
)

// Imitation is SPEAR's self-imitation (section 4.1): learning from rows of the replay buffer under a separate objective
// (loss.SelfImitation). In the released code, the optimiser steps on these rows come after the steps on the batch and
// are split by the same rule. In the joint form of the paper (eq. 11),
//
//	J = J_GRPO(batch) + γ·J_SIL(replay)
//
// each optimiser step takes the gradient of the sum over a mini-batch of the batch and a mini-batch of the replayed
// rows. The replayed rows are split into as many mini-batches as the batch. Each loss keeps its own denominators.
type Imitation struct {
	Rows      []schema.BatchRow // advantages are the recalibrated ones; empty = only the batch
	Objective loss.Objective
	Joint     bool
	Shuffle   *rand.Rand // like the batch's stream, but separate from it
	Tokens    *rand.Rand
}

// updater prepares the steps on the replayed rows.
func (i *Imitation) updater(cfg Config, st *stepper, result *Result) (*updater, error) {
	cfg.Objective, cfg.Shuffle, cfg.Tokens = i.Objective, i.Shuffle, i.Tokens
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if i.Objective.NeedsMinibatch() && i.Tokens == nil {
		return nil, errors.New("a random stream for the tokens is needed")
	}
	rows, err := prepare(i.Rows, cfg.Objective)
	return &updater{cfg: cfg, rows: rows, stepper: st, result: result, source: schema.SourceReplay}, err
}
