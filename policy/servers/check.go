package servers

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// roundingAbove is how far beyond its bound rounding may take a number.
const roundingAbove = 1e-3

// checkRequest is what every sampler refuses, for a model of this shape. most is the longest sequence of the servers.
func checkRequest(s checkpoint.Shape, most int, can policy.Capabilities, req policy.GenerateRequest) error {
	if err := req.Check(can.TopLogProbs); err != nil {
		return err
	}
	if err := checkSampling(can, req); err != nil {
		return err
	}
	for i, p := range req.Prefixes {
		if len(p) == 0 {
			return bad("prefix %d is empty", i)
		}
		if err := policy.CheckTokens(s.Vocab, p); err != nil {
			return bad("prefix %d: %v", i, err)
		}
		if req.MaxTokens[i] < 1 || len(p)+req.MaxTokens[i] > min(s.Positions, most) {
			return bad("row %d: budget of %d tokens after a prefix of %d; the model has %d positions, the servers %d",
				i, req.MaxTokens[i], len(p), s.Positions, most)
		}
	}
	if err := policy.CheckTokens(s.Vocab, req.Stop); err != nil {
		return bad("stop: %v", err)
	}
	return nil
}

// checkSampling refuses temperatures and truncations that the servers do not offer.
func checkSampling(can policy.Capabilities, req policy.GenerateRequest) error {
	t := req.Temperature
	if !can.Temperature && t != 1 && !(t == 0 && can.Greedy) {
		return bad("temperature is %v, and the servers' log-probabilities would be those of temperature 1", t)
	}
	for _, c := range []struct {
		name       string
		wanted, ok bool
	}{
		{"top-k", req.Truncation.TopK > 0, can.TopK},
		{"top-p", policy.Truncation{TopP: req.Truncation.TopP}.Active(), can.TopP},
		{"min-p", req.Truncation.MinP > 0, can.MinP},
	} {
		if c.wanted && !c.ok && t > 0 {
			return bad("the servers do not offer %s sampling with log-probabilities of what it leaves", c.name)
		}
	}
	return nil
}

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{policy.ErrBadRequest}, args...)...)
}

// checkResponse checks what a server has generated for a row and says why the row ended.
func (l *link) checkResponse(vocab int, r row, out *response) error {
	n, said := len(out.tokens), out.finish
	finish, err := policy.Ending(vocab, r.maxTokens, r.stop, out.tokens, said)
	if err != nil {
		return l.fault("its response%v", err)
	}
	if out.finish = finish; said != "" {
		return nil
	}
	if l.known.Capabilities.LogProbs {
		if err := l.checkNumbers("log-probability", out.logProbs, n, math.Inf(-1), 0); err != nil {
			return err
		}
	}
	if err := l.checkTops(r, out, n); err != nil {
		return err
	}
	if l.known.Capabilities.Entropy == policy.EntropyNone {
		out.entropies = nil
		return nil
	}
	return l.checkNumbers("entropy", out.entropies, n, 0, math.Log(float64(vocab)))
}

// checkNumbers checks that there is a number for each of n tokens, between lo and hi. Numbers that rounding has taken
// beyond a bound are set to it.
func (l *link) checkNumbers(what string, values []float32, n int, lo, hi float64) error {
	if len(values) != n {
		return l.fault("its response has %d tokens and %d numbers of the kind %s", n, len(values), what)
	}
	for i, v := range values {
		p := float64(v)
		if math.IsNaN(p) || math.IsInf(p, 0) || p < lo-roundingAbove || p > hi+roundingAbove {
			return l.fault("the %s of token %d is %v, not between %.4g and %.4g", what, i, p, lo, hi)
		}
		values[i] = float32(min(max(p, lo), hi))
	}
	return nil
}
