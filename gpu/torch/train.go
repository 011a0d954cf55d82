package torch

import (
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/gpu/wire"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/choice"
)

// Backward adds the gradients of one kept pass.
func (e *Engine) Backward(ctx context.Context, role policy.Role, kept policy.Kept, c policy.Cotangents) error {
	return e.runCall(ctx, "backward", func(p *process) error { return e.backward(ctx, p, role, kept, c) })
}

func (e *Engine) backward(
	ctx context.Context, p *process, role policy.Role, kept policy.Kept, c policy.Cotangents,
) error {
	e.mu.Lock()
	pass, ok := e.kept[kept]
	e.mu.Unlock()
	if !ok || pass.role != role {
		return fmt.Errorf("%w: %s %d", policy.ErrNotKept, role, kept)
	}
	arrays := []wire.Array{wire.Of(wire.NameLengths, pass.lengths)}
	for _, o := range outputs {
		rows := map[policy.Outputs][][]float32{
			policy.OutLogProb: c.LogProbs, policy.OutEntropy: c.Entropies, policy.OutValue: c.Values,
		}[o.bit]
		if rows == nil {
			continue
		}
		if err := checkCotangents(pass, o, rows); err != nil {
			return err
		}
		flat, _ := wire.Flatten(rows)
		arrays = append(arrays, wire.Of(o.array, flat))
	}
	_, _, err := ask[wire.Answer](ctx, e, p, outgoing{
		name: wire.CallBackward,
		message: func(h wire.Head) any {
			return wire.Backward{Head: h, Role: string(role), Kept: uint64(kept) & (1<<keptBits - 1)}
		},
		arrays: arrays, trains: true,
	})
	if errors.Is(err, policy.ErrBadRequest) {
		return err // the pass is still kept
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.kept, kept)
	if err != nil {
		return e.opts.withSize(err, pass.lengths, true)
	}
	for _, n := range pass.lengths {
		e.usage.Trained += int64(n)
	}
	return nil
}

func checkCotangents(pass keptPass, o output, rows [][]float32) error {
	if !pass.outputs.Has(o.bit) {
		return bad("%s cotangents for a pass that kept no such output", o.said)
	}
	if len(rows) != len(pass.lengths) {
		return bad("%s cotangents of %d rows for %d sequences", o.said, len(rows), len(pass.lengths))
	}
	for i, r := range rows {
		if len(r) != int(pass.lengths[i]) {
			return bad("%s cotangents of row %d: %d tokens for %d", o.said, i, len(r), pass.lengths[i])
		}
	}
	return nil
}

// Discard drops a role's kept passes and gradients.
func (e *Engine) Discard(ctx context.Context, role policy.Role) error {
	return e.runCall(ctx, "discard", func(p *process) error {
		_, _, err := ask[wire.Answer](ctx, e, p, ofRole(wire.CallDiscard, role))
		if err == nil {
			e.dropKept(role)
		}
		return err
	})
}

// Step takes one optimiser step.
func (e *Engine) Step(ctx context.Context, role policy.Role, o policy.StepOptions) (stats policy.StepStats, err error) {
	if err := o.Validate(); err != nil {
		return stats, fmt.Errorf("step: %w", err)
	}
	err = e.runCall(ctx, "step", func(p *process) error {
		a, _, err := ask[wire.StepAnswer](ctx, e, p,
			outgoing{name: wire.CallStep, trains: true, message: func(h wire.Head) any {
				return wire.Step{
					Head: h, Role: string(role), LR: o.LR, ClipNorm: o.ClipNorm,
					Optimizer: o.Rule.Declaration().Name, Settings: choice.Values(o.Rule),
				}
			}})
		stats = policy.StepStats{GradNorm: a.GradNorm, Clipped: a.Clipped, Step: a.Step}
		return err
	})
	return stats, err
}
