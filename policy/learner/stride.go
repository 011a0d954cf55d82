package learner

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// stride is one optimiser step: on one mini-batch, or on one mini-batch of each source.
type stride []striding

// striding is a mini-batch with the updater of its rows.
type striding struct {
	of     *updater
	batch  planned
	number int // number among the source's mini-batches, from 0
}

// strides plans the optimiser steps of an update. If not joint, the steps of each part follow the steps of the previous
// part. If joint, the k-th step takes the k-th mini-batch of every part. The number of steps is then the number of
// mini-batches of the first part that has rows.
func strides(parts []*updater, joint bool) []stride {
	if !joint {
		var out []stride
		for _, u := range parts {
			u.plan(u.minibatches())
			for k, p := range u.planned {
				out = append(out, stride{{u, p, k}})
			}
		}
		return out
	}
	n := 0
	for _, u := range parts {
		if n == 0 {
			n = u.minibatches()
		}
	}
	out := make([]stride, n*parts[0].cfg.Epochs)
	for _, u := range parts {
		u.plan(n)
		for k, p := range u.planned {
			if len(p.rows) > 0 {
				out[k] = append(out[k], striding{u, p, k})
			}
		}
	}
	return out
}

// take takes the step and records each of its mini-batches. All mini-batches are prepared under the policy before the
// step. The gradient is the sum of their gradients.
func (s stride) take(ctx context.Context, st *stepper, opts policy.StepOptions) error {
	shares, totals := make([]share, len(s)), make([]loss.Result[float32], len(s))
	for i, b := range s {
		plan, err := b.of.prepareStep(ctx, b.batch)
		if err != nil {
			return err
		}
		shares[i] = b.of.share(b.batch, plan, &totals[i])
	}
	stats, err := st.minibatch(ctx, opts, shares...)
	if err != nil {
		return err
	}
	for i, b := range s {
		b.batch.micros = shares[i].micros // smaller than planned if the engine ran out of memory
		b.of.record(b.batch, totals[i], stats)
	}
	return nil
}

// String returns the name of the step for an error.
func (s stride) String() string {
	return fmt.Sprintf("minibatch %d of %d", s[0].number+1, len(s[0].of.planned))
}
