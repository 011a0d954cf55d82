package learner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/schema"
)

// Imitation is SPEAR's self-imitation (section 4.1, eqs 9–16): after the optimiser steps on the batch come
// those on rows out of the replay buffer, cut by the same rule, with the loss
//
//	γ · agg(max(−Ã·r, −Ã·clip(r, 1 − Low, 1 + High)))
//
// where r is the ratio to the policy that wrote the row. No other term of the loss applies to them.
// Departure: the paper writes one sum of both losses; its released code takes these sequential steps.
type Imitation struct {
	Rows       []schema.BatchRow // advantages are Ã; none leave it at the batch
	Clip       loss.PPOClip
	Gamma      float64
	Covariance CovarianceClip
	Draws      *rand.Rand // fresh and seeded: its shuffle, and which tokens are taken out
}

// CovarianceClip takes tokens out of a mini-batch's loss, of those whose advantage and log-probability
// covary strongly (Clip-Cov; SPEAR eq 16): c_t = (A_t − mean A)(logp_t − mean logp), over the loss
// tokens of the mini-batch. max(1, ⌊Ratio·tokens⌋) of those with Low < c_t < High that the clip leaves
// alone are drawn; their loss is 0 and they stay in the denominator. Departure: means and budget are the
// mini-batch's, where eq 16 centres each position over a group.
type CovarianceClip struct {
	Ratio     float64 // of the loss tokens; 0 takes none
	Low, High float64
}

func (i *Imitation) validate() error {
	switch c := i.Covariance; {
	case !(i.Gamma >= 0) || math.IsInf(i.Gamma, 0):
		return fmt.Errorf("gamma must be finite and ≥ 0, got %g", i.Gamma)
	case !(c.Ratio >= 0 && c.Ratio <= 1):
		return fmt.Errorf("covariance ratio must be of [0, 1], got %g", c.Ratio)
	case c.Ratio > 0 && !(c.Low < c.High):
		return fmt.Errorf("covariance bounds must hold something between them, got %g and %g", c.Low, c.High)
	case i.Draws == nil:
		return errors.New("a random stream for the imitation is needed")
	}
	return i.Clip.Validate()
}

// updater takes the rows through the same steps as the batch's.
func (i *Imitation) updater(cfg Config, l *lane, result *Result) (*updater, error) {
	if err := i.validate(); err != nil {
		return nil, err
	}
	cfg.Surrogate, cfg.Terms, cfg.Shuffle = i.Clip, Terms{}, i.Draws
	rows, err := prepare(i.Rows, cfg.Terms)
	return &updater{cfg: cfg, rows: rows, lane: l, result: result, source: schema.SourceReplay, imitation: i}, err
}

// weigh computes the advantages that a mini-batch's loss sees: γ·Ã, and 0 of the tokens that are taken
// out. The loss is proportional to them, so that is what γ and taking out mean.
func (u *updater) weigh(ctx context.Context, rows []int) error {
	u.weighed = nil
	if u.imitation == nil {
		return nil
	}
	rows = slices.Sorted(slices.Values(rows)) // the rows' own order, whatever the shuffle's
	out, err := u.takenOut(ctx, rows)
	if err != nil {
		return err
	}
	u.weighed = map[int][]float64{}
	for _, i := range rows {
		u.weighed[i] = slices.Clone(u.rows[i].loss.Advantages)
		for t := range u.weighed[i] {
			u.weighed[i][t] *= u.imitation.Gamma
		}
	}
	for _, p := range out {
		u.weighed[rows[p.row]][p.token] = 0
	}
	return nil
}

// takenOut draws the tokens that are taken out of a mini-batch. It asks the policy as it is before the
// optimiser step.
func (u *updater) takenOut(ctx context.Context, rows []int) ([]place, error) {
	if u.imitation.Covariance.Ratio == 0 {
		return nil, nil
	}
	sequences := make([][]int32, len(rows))
	for k, i := range rows {
		sequences[k] = u.rows[i].tokens
	}
	now, err := Outputs(ctx, u.lane.engine, policy.ForwardRequest{
		Role: policy.RolePolicy, Sequences: sequences, Temperature: u.cfg.Temperature, Outputs: policy.OutLogProb,
	}, u.cfg.MicrobatchTokens, nil)
	if err != nil {
		return nil, err
	}
	return u.imitation.draw(u.filled(rows, now)), nil
}

// place is one token of a mini-batch.
type place struct{ row, token int }

// draw returns the tokens that are taken out of a mini-batch.
func (i *Imitation) draw(rows []loss.Row) []place {
	tokens, advantages, logProbs := 0, 0.0, 0.0
	each(rows, func(p place, r loss.Row) {
		tokens++
		advantages += r.Advantages[p.token]
		logProbs += r.LogProbs[p.token]
	})
	if tokens == 0 {
		return nil
	}
	n, c := float64(tokens), i.Covariance
	var candidates []place
	each(rows, func(p place, r loss.Row) {
		a, l := r.Advantages[p.token], r.LogProbs[p.token]
		covariance := (a - advantages/n) * (l - logProbs/n)
		if covariance > c.Low && covariance < c.High && !i.Clip.Token(l-r.Old[p.token], a).Clipped {
			candidates = append(candidates, p)
		}
	})
	budget := min(max(1, int(c.Ratio*n)), len(candidates))
	for k := range budget {
		j := k + i.Draws.IntN(len(candidates)-k)
		candidates[k], candidates[j] = candidates[j], candidates[k]
	}
	return candidates[:budget]
}

// each visits the loss tokens in order.
func each(rows []loss.Row, visit func(place, loss.Row)) {
	for k, r := range rows {
		for t, m := range r.Mask {
			if m != 0 {
				visit(place{k, t}, r)
			}
		}
	}
}
