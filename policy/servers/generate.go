package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/internal/openai"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/policy"
)

// throttledMost is how many times as many requests a row may need where servers say that they have too much to do.
const throttledMost = 20

// generate hands all rows over at once; the scheduler bounds how many are in flight.
func (s *Sampler) generate(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	n := len(req.Prefixes)
	found, errs := make([]response, n), make([]error, n)
	var asked []int // rows without a whole response
	var rows []row
	for i := range n {
		r := rowOf(req, i)
		if found[i] = s.finished.get(r.key(s.loaded.digest)); found[i].finish == "" {
			asked, rows = append(asked, i), append(rows, r)
		}
	}
	var all rescue.WaitGroup
	for k, f := range s.dispatch.submit(rows, req.Evaluation) {
		i := asked[k]
		all.Go(func() {
			defer s.dispatch.leave(f)
			if found[i], errs[i] = s.respond(ctx, f, found[i]); len(found[i].tokens) > 0 {
				s.finished.put(f.key(s.loaded.digest), found[i])
			}
		})
	}
	all.Wait() // also when one has failed: the others are kept
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
func (s *Sampler) respond(ctx context.Context, f *flight, begun response) (response, error) {
	attempts, throttled := 0, 0
	for {
		a, of, err := s.dispatch.await(ctx, f)
		if err != nil {
			return begun, s.stuck(f, err)
		}
		r := f.row.after(begun)
		out, err := a.server.respond(of, s.loaded.shape.Vocab, r)
		if err == nil { // also if the attempt was given up meanwhile
			a.cancel(nil)
			whole := begun.and(out)
			s.dispatch.answered(f, a, len(out.tokens), whole)
			return whole, nil
		}
		if a.server.believable(of, s.loaded.shape.Vocab, r, out, err) {
			begun = begun.and(out)
		}
		if ctx.Err() != nil {
			a.cancel(nil)
			return begun, context.Cause(ctx)
		}
		taken := errors.Is(context.Cause(of), errTaken)
		a.cancel(nil)
		if taken {
			continue
		}
		if kindOf(err) == openai.Throttled {
			throttled++
		} else {
			attempts++
		}
		again := s.dispatch.failed(ctx, f, a, len(begun.tokens), err)
		switch {
		case again && attempts < a.Attempts && throttled < throttledMost*a.Attempts:
		case again && !s.dispatch.any(): // the servers are at fault, and not the row
			return begun, s.allAway("ask for a response")
		default:
			return begun, err
		}
	}
}

// stuck says why no server takes a row.
func (s *Sampler) stuck(f *flight, err error) error {
	switch {
	case !errors.Is(err, errStuck):
		return err
	case !s.dispatch.any():
		return s.allAway("ask for a response")
	}
	if lost := s.checkLost(len(f.prefix), f.maxTokens); lost != nil {
		return lost
	}
	return fmt.Errorf("%w: a prefix of %d tokens and a budget of %d", err, len(f.prefix), f.maxTokens)
}

// respond asks one server, and checks what comes.
func (v *server) respond(ctx context.Context, vocab int, r row) (response, error) {
	out, err := v.dialect.row(ctx, r)
	if err != nil {
		return out, err
	}
	return out, v.checkResponse(vocab, r, &out)
}
