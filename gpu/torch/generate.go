package torch

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/gpu/wire"
	"github.com/ropewalk/ropewalk/policy"
)

// mostTop is the greatest number of likeliest tokens that a request can ask for; MOST_TOP of the process.
const mostTop = 20

// Generate samples one response per prefix.
func (e *Engine) Generate(ctx context.Context, req policy.GenerateRequest) (out policy.Generated, err error) {
	if err := checkGenerate(req); err != nil {
		return out, fmt.Errorf("generate: %w", err)
	}
	err = e.runCall(ctx, "generate", func(p *process) error {
		out, err = e.generate(ctx, p, req)
		return err
	})
	return out, err
}

func (e *Engine) generate(ctx context.Context, p *process, req policy.GenerateRequest) (policy.Generated, error) {
	none, rows := policy.Generated{}, len(req.Prefixes)
	tokens, lengths := wire.Flatten(req.Prefixes)
	budgets, most := make([]int32, rows), uint64(0)
	for i, n := range req.MaxTokens {
		budgets[i], most = int32(n), most+uint64(n)
	}
	_, arrays, err := ask[wire.Answer](ctx, e, p, outgoing{
		name: wire.CallGenerate,
		message: func(h wire.Head) any {
			return wire.Generate{
				Head: h, Role: string(req.Role), Temperature: req.Temperature, TopK: req.Truncation.TopK,
				TopP: req.Truncation.TopP, MinP: req.Truncation.MinP, Stop: append([]int32{}, req.Stop...),
				Top: req.Top, TopTokens: req.TopTokens,
			}
		},
		arrays: []wire.Array{
			wire.Of(wire.NameStreams, req.Streams), wire.Of(wire.NameTokens, tokens),
			wire.Of(wire.NameLengths, lengths), wire.Of(wire.NameMaxTokens, budgets),
		},
		answer: 12*most + 5*uint64(rows) + 4*uint64(rows*req.Top*req.TopTokens),
	}, wantedArrays(req)...)
	if err != nil {
		return none, e.opts.withSize(err, lengths, false)
	}
	out, err := generated(arrays, req)
	if err != nil {
		p.endOnBreach(err)
		return none, p.lost
	}
	e.count(func(u *Usage) {
		for _, r := range out.Tokens {
			u.Generated += int64(len(r))
		}
	})
	return out, nil
}

// wantedArrays lists the arrays that an answer must have.
func wantedArrays(req policy.GenerateRequest) []wire.Want {
	rows := len(req.Prefixes)
	out := []wire.Want{
		{Name: wire.NameTokens, Dtype: wire.I32, Len: -1}, {Name: wire.NameLengths, Dtype: wire.I32, Len: rows},
		{Name: wire.NameLogProbs, Dtype: wire.F32, Len: -1}, {Name: wire.NameEntropies, Dtype: wire.F32, Len: -1},
		{Name: wire.NameFinish, Dtype: wire.U8, Len: rows},
	}
	if req.Top > 0 {
		out = append(out, wire.Want{Name: wire.NameTop, Dtype: wire.F32, Len: rows * req.TopTokens * req.Top})
	}
	return out
}

// likeliest cuts the flat log-probabilities of the likeliest tokens, [rows][TopTokens][Top], into those of the tokens
// that the rows have. −∞ fills the places of tokens that there are not.
func likeliest(flat []float32, tokens [][]int32, req policy.GenerateRequest) [][][]float32 {
	out := make([][][]float32, len(tokens))
	for i, ids := range tokens {
		for t := range min(len(ids), req.TopTokens) {
			at := (i*req.TopTokens + t) * req.Top
			position := flat[at : at+req.Top : at+req.Top]
			for len(position) > 0 && math.IsInf(float64(position[len(position)-1]), -1) {
				position = position[:len(position)-1]
			}
			out[i] = append(out[i], position)
		}
	}
	return out
}

// generated cuts the answer's arrays (tokens, lengths, log-probabilities, entropies, finish) into rows and checks them
// against the request.
func generated(arrays []wire.Array, req policy.GenerateRequest) (out policy.Generated, err error) {
	lengths, err := wire.Values[int32](arrays[1])
	if err != nil {
		return out, err
	}
	if out.Tokens, err = splitRows[int32](arrays[0], lengths); err != nil {
		return out, err
	}
	if out.LogProbs, err = splitRows[float32](arrays[2], lengths); err != nil {
		return out, err
	}
	if out.Entropies, err = splitRows[float32](arrays[3], lengths); err != nil {
		return out, err
	}
	finish, err := wire.Values[uint8](arrays[4])
	if err != nil {
		return out, err
	}
	if req.Top > 0 {
		flat, err := wire.Values[float32](arrays[5])
		if err != nil {
			return out, err
		}
		out.Top = likeliest(flat, out.Tokens, req)
	}
	for i, f := range finish {
		n := len(out.Tokens[i])
		stopped := n > 0 && slices.Contains(req.Stop, out.Tokens[i][n-1])
		switch {
		case n < 1 || n > req.MaxTokens[i]:
			return out, fmt.Errorf(
				"%w: row %d has %d tokens of a budget of %d", wire.ErrProtocol, i, n, req.MaxTokens[i],
			)
		case f == wire.FinishStop && stopped:
			out.Finish = append(out.Finish, policy.FinishStop)
		case f == wire.FinishLength && !stopped && n == req.MaxTokens[i]:
			out.Finish = append(out.Finish, policy.FinishLength)
		default:
			return out, fmt.Errorf("%w: row %d of %d tokens is said to have ended by %d", wire.ErrProtocol, i, n, f)
		}
	}
	return out, nil
}

func splitRows[T int32 | float32](a wire.Array, lengths []int32) ([][]T, error) {
	flat, err := wire.Values[T](a)
	if err != nil {
		return nil, err
	}
	rows, err := wire.Cut(flat, lengths)
	if err != nil {
		return nil, fmt.Errorf("array %q: %w", a.Name, err)
	}
	return rows, nil
}

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{policy.ErrBadRequest}, args...)...)
}

// checkGenerate refuses requests that do not fit the protocol's arrays. The engine refuses what the model cannot do.
func checkGenerate(req policy.GenerateRequest) error {
	if err := req.Check(mostTop); err != nil {
		return err
	}
	for i, n := range req.MaxTokens {
		if n < 1 || n > math.MaxInt32 {
			return bad("row %d: budget of %d tokens", i, n)
		}
	}
	return checkRows("prefix", req.Prefixes)
}

func checkRows(what string, rows [][]int32) error {
	for i, r := range rows {
		if len(r) == 0 {
			return bad("%s %d is empty", what, i)
		}
	}
	return nil
}
