package learner

import (
	"errors"
	"math/rand/v2"

	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/schema"
)

// Imitation is SPEAR's self-imitation (section 4.1): after the optimiser steps on the batch come those on
// rows out of the replay buffer, cut by the same rule, under an objective of their own (loss.SelfImitation).
// Departure: the paper writes one sum of both losses; its released code takes these sequential steps.
type Imitation struct {
	Rows      []schema.BatchRow // advantages are the recalibrated ones; no rows leave it at the batch
	Objective loss.Objective
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
