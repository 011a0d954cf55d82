package torch

import (
	"context"
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/gpu/wire"
	"github.com/ropewalk/ropewalk/policy"
)

// output is one kind of output, under its names.
type output struct {
	bit         policy.Outputs
	said, array string
}

var outputs = []output{
	{policy.OutLogProb, wire.OutLogProb, wire.NameLogProbs},
	{policy.OutEntropy, wire.OutEntropy, wire.NameEntropies},
	{policy.OutValue, wire.OutValue, wire.NameValues},
}

// Forward returns per-token outputs of whole sequences.
func (e *Engine) Forward(ctx context.Context, req policy.ForwardRequest) (out policy.TokenOutputs, err error) {
	if err := checkForward(req); err != nil {
		return out, fmt.Errorf("forward: %w", err)
	}
	err = e.runCall(ctx, "forward", func(p *process) error {
		out, err = e.forward(ctx, p, req)
		return err
	})
	return out, err
}

func checkForward(req policy.ForwardRequest) error {
	if !(req.Temperature > 0) || math.IsInf(req.Temperature, 0) {
		return bad("temperature is %v", req.Temperature)
	}
	if req.Outputs == 0 || req.Outputs&^(policy.OutLogProb|policy.OutEntropy|policy.OutValue) != 0 {
		return bad("outputs %b", req.Outputs)
	}
	return checkRows("sequence", req.Sequences)
}

func (e *Engine) forward(
	ctx context.Context, p *process, req policy.ForwardRequest,
) (out policy.TokenOutputs, err error) {
	tokens, lengths := wire.Flatten(req.Sequences)
	var names []string
	var wants []wire.Want
	for _, o := range outputs {
		if req.Outputs.Has(o.bit) {
			names = append(names, o.said)
			wants = append(wants, wire.Want{Name: o.array, Dtype: wire.F32, Len: len(tokens)})
		}
	}
	a, arrays, err := ask[wire.ForwardAnswer](ctx, e, p, outgoing{
		name: wire.CallForward,
		message: func(h wire.Head) any {
			return wire.Forward{
				Head: h, Role: string(req.Role), Temperature: req.Temperature, Outputs: names, Keep: req.Keep,
			}
		},
		arrays: []wire.Array{wire.Of(wire.NameTokens, tokens), wire.Of(wire.NameLengths, lengths)},
		answer: 4 * uint64(len(tokens)) * uint64(len(wants)), trains: req.Keep,
	}, wants...)
	if err != nil {
		return out, e.opts.withSize(err, lengths, req.Keep)
	}
	if (a.Kept != 0) != req.Keep || a.Kept>>keptBits != 0 {
		p.endOnBreach(fmt.Errorf("%w: a pass is kept as %d, keep being %t", wire.ErrProtocol, a.Kept, req.Keep))
		return out, p.lost
	}
	for _, array := range arrays {
		rows, err := splitRows[float32](array, lengths)
		if err != nil {
			p.endOnBreach(err)
			return out, p.lost
		}
		switch array.Name {
		case wire.NameLogProbs:
			out.LogProbs = rows
		case wire.NameEntropies:
			out.Entropies = rows
		case wire.NameValues:
			out.Values = rows
		}
	}
	e.count(func(u *Usage) { u.Tokens += int64(len(tokens)) })
	if req.Keep {
		out.Kept = e.keep(a.Kept, keptPass{role: req.Role, lengths: lengths, outputs: req.Outputs})
	}
	return out, nil
}

// keptBits is the number of bits for the engine's own number of a pass. The bits above hold the number of the process's
// start, so that a pass of a lost process is never mistaken for one of the next process.
const keptBits = 40

func (e *Engine) keep(number uint64, k keptPass) policy.Kept {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := policy.Kept(e.starts<<keptBits | number)
	e.kept[id] = k
	e.usage.Microbatches++
	return id
}
