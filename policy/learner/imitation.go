package learner

import (
	"errors"
	"math/rand/v2"

	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/schema"
)

// Imitation is SPEAR's self-imitation (section 4.1): learning from rows out of the replay buffer under an
// objective of their own (loss.SelfImitation). As the released code has it, the optimiser steps on them
// come after those on the batch, cut by the same rule. Jointly, as the paper writes it (eq. 13),
//
//	J = J_GRPO(batch) + γ·J_SIL(replay)
//
// each optimiser step takes the gradient of the sum over a mini-batch of the batch and one of the replayed
// rows, which are cut into as many mini-batches as the batch is. Each loss keeps its own denominators.
type Imitation struct {
	Rows      []schema.BatchRow // advantages are the recalibrated ones; no rows leave it at the batch
	Objective loss.Objective
	Joint     bool
	Shuffle   *rand.Rand // as the batch's, and apart from them
	Tokens    *rand.Rand
}

// updater takes the rows through their steps.
func (i *Imitation) updater(cfg Config, l *lane, result *Result) (*updater, error) {
	cfg.Objective, cfg.Shuffle, cfg.Tokens = i.Objective, i.Shuffle, i.Tokens
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if i.Objective.NeedsMinibatch() && i.Tokens == nil {
		return nil, errors.New("a random stream for the tokens is needed")
	}
	rows, err := prepare(i.Rows, cfg.Objective)
	return &updater{cfg: cfg, rows: rows, lane: l, result: result, source: schema.SourceReplay}, err
}
