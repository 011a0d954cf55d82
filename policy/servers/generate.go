package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/internal/openai"
	"github.com/ropewalk/ropewalk/policy"
)

// throttledMost is how many times as many requests a row may need where servers say that they have too much to do.
const throttledMost = 20

// generate asks for all rows at once; the dispatcher bounds how many are in flight.
func (s *Sampler) generate(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	n := len(req.Prefixes)
	found, errs := make([]response, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		r := rowOf(req, i)
		all.Go(func() {
			key := r.key(s.loaded.digest)
			kept := s.finished.get(key)
			if kept.finish != "" {
				found[i] = kept
				return
			}
			if found[i], errs[i] = s.respond(ctx, r, kept); len(found[i].tokens) > 0 {
				s.finished.put(key, found[i])
			}
		})
	}
	all.Wait() // also for rows that a drained server is about to finish: they are kept
	if cause := context.Cause(ctx); ctx.Err() != nil {
		return policy.Generated{}, cause
	}
	if i := slices.IndexFunc(errs, func(err error) bool { return errors.Is(err, policy.ErrLost) }); i >= 0 {
		return policy.Generated{}, errs[i]
	}
	var out policy.Generated
	if s.can.LogProbs {
		out.LogProbs = [][]float32{}
	}
	if s.can.Entropy != policy.EntropyNone {
		out.Entropies = [][]float32{}
	}
	for i, r := range found {
		if errs[i] != nil {
			return policy.Generated{}, fmt.Errorf("row %d: %w", i, errs[i])
		}
		out.Tokens, out.Finish = append(out.Tokens, r.tokens), append(out.Finish, r.finish)
		if s.can.LogProbs {
			out.LogProbs = append(out.LogProbs, r.logProbs)
		}
		if s.can.Entropy != policy.EntropyNone {
			out.Entropies = append(out.Entropies, r.entropies)
		}
	}
	out.Top = top(req, found)
	for i := range n { // the caller has them
		s.finished.drop(rowOf(req, i).key(s.loaded.digest))
	}
	return out, nil
}

// rowOf is one row of a request.
func rowOf(req policy.GenerateRequest, i int) row {
	return row{prefix: req.Prefixes[i], stream: req.Streams[i], maxTokens: req.MaxTokens[i],
		temperature: req.Temperature, cut: req.Truncation, stop: req.Stop, top: req.Top, topTokens: req.TopTokens}
}

// respond gets one response, from one server after the other. begun are the tokens that an earlier request has brought;
// with an error it returns those that have come so far.
func (s *Sampler) respond(ctx context.Context, whole row, begun response) (response, error) {
	failed := map[*server]bool{}
	attempts, throttled := 0, 0
	for r := whole.after(begun); ; r = whole.after(begun) {
		v, err := s.dispatch.take(ctx, s.servers, r.cost(), failed)
		if err != nil {
			return begun, err
		}
		if v == nil {
			if !s.dispatch.any(s.servers) {
				return begun, s.allAway("ask for a response")
			}
			return begun, fmt.Errorf("no server in use takes a prefix of %d tokens and a budget of %d",
				len(r.prefix), r.maxTokens)
		}
		out, err := v.respond(ctx, s.loaded.shape.Vocab, r)
		again := s.dispatch.done(ctx, v, r.cost(), err)
		if err == nil {
			return begun.and(out), nil
		}
		if v.believable(ctx, s.loaded.shape.Vocab, r, out, err) {
			begun = begun.and(out)
		}
		if ctx.Err() != nil {
			return begun, context.Cause(ctx)
		}
		if kindOf(err) == openai.Throttled {
			throttled++
		} else {
			failed[v] = true
			attempts++
		}
		switch {
		case again && attempts < v.Attempts && throttled < throttledMost*v.Attempts:
		case again && !s.dispatch.any(s.servers): // the servers are at fault, and not the row
			return begun, s.allAway("ask for a response")
		default:
			return begun, err
		}
	}
}

// respond asks one server, and checks what comes.
func (v *server) respond(ctx context.Context, vocab int, r row) (response, error) {
	out, err := v.dialect.row(ctx, r)
	if err != nil {
		return out, err
	}
	return out, v.checkResponse(vocab, r, &out)
}
