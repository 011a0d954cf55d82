package tinker

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// Forward returns log-probabilities, the only output of the API.
func (e *Engine) Forward(ctx context.Context, req policy.ForwardRequest) (out policy.TokenOutputs, err error) {
	err = e.call(ctx, "forward", func() (err error) { out, err = e.forward(ctx, req); return err })
	return out, err
}

func (e *Engine) forward(ctx context.Context, req policy.ForwardRequest) (policy.TokenOutputs, error) {
	r, err := e.loaded(req.Role)
	if err == nil {
		err = e.checkForward(r, req)
	}
	if err != nil {
		return policy.TokenOutputs{}, err
	}
	logProbs, err := e.session.forward(ctx, r.model, req.Sequences)
	if err != nil {
		return policy.TokenOutputs{}, e.after(ctx, err)
	}
	out := policy.TokenOutputs{LogProbs: logProbs}
	if req.Keep {
		e.kept++
		out.Kept = e.kept
		r.kept[e.kept] = pass{rows: clone(req.Sequences), logProbs: clone(logProbs)}
	}
	return out, nil
}

func clone[T any](rows [][]T) [][]T {
	out := make([][]T, len(rows))
	for i, row := range rows {
		out[i] = append([]T(nil), row...)
	}
	return out
}

func (e *Engine) checkForward(r *role, req policy.ForwardRequest) error {
	switch {
	case req.Outputs == 0:
		return bad("no outputs are asked for")
	case req.Outputs != policy.OutLogProb:
		return bad("a Tinker server returns log-probabilities alone, no entropies and no values")
	case req.Temperature != 1:
		return bad("temperature is %v; a Tinker server computes log-probabilities of temperature 1", req.Temperature)
	}
	if err := req.CheckShared(); err != nil {
		return err
	}
	for i, ids := range req.Sequences {
		if most := e.longest(r); len(ids) == 0 || len(ids) > most {
			return bad("sequence %d has %d tokens, want 1 to %d", i, len(ids), most)
		}
		if err := policy.CheckTokens(r.shape.Vocab, ids); err != nil {
			return bad("sequence %d: %v", i, err)
		}
	}
	return nil
}

// longest is the longest sequence that model and server take.
func (e *Engine) longest(r *role) int {
	if e.facts.Positions > 0 {
		return min(e.facts.Positions, r.shape.Positions)
	}
	return r.shape.Positions
}

// Backward keeps the cotangents of a pass for the next Step.
func (e *Engine) Backward(ctx context.Context, name policy.Role, kept policy.Kept, c policy.Cotangents) error {
	return e.call(ctx, "backward", func() error { return e.backward(name, kept, c) })
}

func (e *Engine) backward(name policy.Role, kept policy.Kept, c policy.Cotangents) error {
	r, err := e.loaded(name)
	if err != nil {
		return err
	}
	p, ok := r.kept[kept]
	switch {
	case !ok:
		return fmt.Errorf("%w: %d", policy.ErrNotKept, kept)
	case c.Values != nil || c.Entropies != nil:
		return bad("a Tinker server has no gradients of entropies and values")
	case r.sealed:
		return bad("the %s was loaded without its optimiser's state, which the server has nevertheless and would go "+
			"on with", name)
	}
	if c.LogProbs == nil {
		for _, row := range p.rows {
			p.cotangents = append(p.cotangents, make([]float32, len(row)))
		}
	} else {
		p.cotangents = clone(c.LogProbs)
	}
	if len(p.cotangents) != len(p.rows) {
		return bad("cotangents of %d rows for %d sequences", len(p.cotangents), len(p.rows))
	}
	for i, row := range p.rows {
		if len(p.cotangents[i]) != len(row) {
			return bad("%d cotangents for the %d tokens of sequence %d", len(p.cotangents[i]), len(row), i)
		}
	}
	delete(r.kept, kept)
	r.queue = append(r.queue, p)
	return nil
}

// Discard drops kept passes and queued gradients. None of them has reached the server.
func (e *Engine) Discard(ctx context.Context, name policy.Role) error {
	return e.call(ctx, "discard", func() error {
		if r := e.roles[name]; r != nil {
			clear(r.kept)
			r.queue = nil
		}
		return nil
	})
}

// Step sends the queued passes and takes an optimiser step. If it fails after the server has taken a part, the role's
// model is dropped, because the server may have stepped or not.
func (e *Engine) Step(ctx context.Context, name policy.Role, o policy.StepOptions) (s policy.StepStats, err error) {
	err = e.call(ctx, "step", func() (err error) { s, err = e.step(ctx, name, o); return err })
	return s, err
}

func (e *Engine) step(ctx context.Context, name policy.Role, o policy.StepOptions) (policy.StepStats, error) {
	r, err := e.loaded(name)
	if err != nil {
		return policy.StepStats{}, err
	}
	if err := e.checkStep(r, o); err != nil {
		return policy.StepStats{}, err
	}
	metrics, err := e.send(ctx, r, o)
	if err != nil && refused(err) && !r.dirty { // nothing has reached the server
		return policy.StepStats{}, e.after(ctx, err)
	}
	if err != nil {
		e.session.unload(context.WithoutCancel(ctx), r.model)
		e.drop(name)
		return policy.StepStats{}, lost(e.after(ctx, err))
	}
	clear(r.kept)
	r.queue, r.digest, r.path, r.sampler = nil, "", "", ""
	r.step++
	stats := policy.StepStats{Step: r.step, GradNorm: math.NaN()}
	if norm := metrics[e.facts.Convention.Norm]; norm != nil {
		stats.GradNorm = *norm
		stats.Clipped = o.ClipNorm > 0 && *norm > o.ClipNorm
	}
	return stats, nil
}

// checkStep refuses steps that the server cannot take, and gradients that are not finite.
func (e *Engine) checkStep(r *role, o policy.StepOptions) error {
	if err := o.Validate(); err != nil {
		return err
	}
	switch a, ok := o.Rule.(optimizer.AdamW); {
	case !ok:
		return bad("the optimizer is %s; servers have AdamW alone", o.Rule.Declaration().Name)
	case a.WeightDecay != 0:
		return bad("weight decay is %v; servers decay what they keep next to the adapter too", a.WeightDecay)
	case o.ClipNorm > 0 && !e.facts.Convention.Clips:
		return bad("clip norm is %v, and server %s does not clip gradients", o.ClipNorm, e.link.Name())
	case r.sealed:
		return bad("the model was loaded without its optimiser's state")
	}
	for _, p := range r.queue {
		for i, row := range p.cotangents {
			for t, c := range row[1:] {
				if v := float64(c); math.IsNaN(v) || math.IsInf(v, 0) {
					return &policy.NonFiniteError{Name: fmt.Sprintf("the cotangent of token %d of sequence %d", t+1, i)}
				}
			}
		}
	}
	return nil
}

// send sends the passes of a step, and the step.
func (e *Engine) send(ctx context.Context, r *role, o policy.StepOptions) (map[string]*float64, error) {
	c := e.facts.Convention
	all := 0
	requests := make([][]int, len(r.queue)) // the rows of each pass that have a gradient
	for i, p := range r.queue {
		requests[i] = moving(p)
		all += len(requests[i])
	}
	for i, p := range r.queue {
		if len(requests[i]) == 0 {
			continue
		}
		var data []any
		for _, k := range requests[i] {
			n := len(p.rows[k]) - 1
			numbers := c.numbers(p.cotangents[k][1:], p.logProbs[k][1:], c.factor(n, len(requests[i]), all))
			data = append(data, datum(p.rows[k], numbers))
		}
		if err := e.session.backward(ctx, r.model, c.Loss, data); err != nil {
			return nil, err
		}
	}
	a := o.Rule.(optimizer.AdamW) // checkStep
	metrics, err := e.session.step(ctx, r.model, adam{LR: o.LR, Beta1: a.Beta1, Beta2: a.Beta2, Eps: a.Epsilon,
		Clip: o.ClipNorm})
	if err != nil {
		r.dirty = r.dirty || !refused(err)
		return nil, err
	}
	if norm := metrics[c.Norm]; norm != nil && (math.IsNaN(*norm) || math.IsInf(*norm, 0)) {
		r.dirty = true
		return nil, errors.Join(&policy.NonFiniteError{Name: "the gradient, says server " + e.link.Name()},
			policy.ErrLost)
	}
	return metrics, nil
}

// moving lists the rows of a pass with a gradient.
func moving(p pass) (out []int) {
	for i, row := range p.cotangents {
		for _, c := range row[1:] {
			if c != 0 {
				out = append(out, i)
				break
			}
		}
	}
	return out
}
