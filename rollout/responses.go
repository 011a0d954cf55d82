package rollout

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/policy"
)

// checkResponses checks that there are n responses and that each has at least one token, with outputs for every token.
// Log-probabilities and entropies that the sampler does not give are nil.
func (l *Loop) checkResponses(g policy.Generated, n int) error {
	whole := func(values [][]float32) bool { return values == nil || len(values) == n }
	if len(g.Tokens) != n || !whole(g.LogProbs) || !whole(g.Entropies) || len(g.Finish) != n ||
		l.trees != nil && len(g.Top) != n {
		return fmt.Errorf("absorb %d responses: got %d", n, len(g.Tokens))
	}
	for j, ids := range g.Tokens {
		logProbs, entropies := valuesOf(g.LogProbs, j), valuesOf(g.Entropies, j)
		if len(ids) == 0 || logProbs != nil && len(logProbs) != len(ids) ||
			entropies != nil && len(entropies) != len(ids) {
			return fmt.Errorf("absorb response %d: %d tokens, %d log-probabilities, %d entropies",
				j, len(ids), len(logProbs), len(entropies))
		}
		if err := errors.Join(l.tok.Check(ids), checkNumbers("log-probability", logProbs, math.Inf(-1), 0),
			checkNumbers("entropy", entropies, 0, math.Inf(1))); err != nil {
			return fmt.Errorf("absorb response %d: %w", j, err)
		}
		if l.trees != nil {
			if err := l.trees.checkTop(g.Top[j], len(ids)); err != nil {
				return fmt.Errorf("absorb response %d: %w", j, err)
			}
		}
	}
	return nil
}

// rounding is how far beyond its bound a number may be.
const rounding = 1e-3

// checkNumbers checks that a response's numbers are finite and between lo and hi.
func checkNumbers(what string, values []float32, lo, hi float64) error {
	for i, v := range values {
		if p := float64(v); math.IsNaN(p) || math.IsInf(p, 0) || p < lo-rounding || p > hi+rounding {
			return fmt.Errorf("the %s of token %d is %g", what, i, v)
		}
	}
	return nil
}

// checkAnswers checks responses, and that they are what the request asks for: each keeps its budget and ends where it
// says.
func (l *Loop) checkAnswers(req policy.GenerateRequest, g policy.Generated) error {
	if err := l.checkResponses(g, len(req.Prefixes)); err != nil {
		return err
	}
	for j, ids := range g.Tokens {
		n := len(ids)
		stop := slices.IndexFunc(ids, func(id int32) bool { return slices.Contains(req.Stop, id) })
		switch {
		case n > req.MaxTokens[j]:
			return fmt.Errorf("absorb response %d: %d tokens, its budget is %d", j, n, req.MaxTokens[j])
		case stop >= 0 && stop < n-1:
			return fmt.Errorf("absorb response %d: %d tokens after its end", j, n-1-stop)
		case g.Finish[j] == policy.FinishStop && stop < 0,
			g.Finish[j] != policy.FinishStop && g.Finish[j] != policy.FinishLength:
			return fmt.Errorf("absorb response %d: it ends with %q after %d of %d tokens", j, g.Finish[j], n,
				req.MaxTokens[j])
		}
	}
	return nil
}

// valuesOf returns a row's values; nil if the sampler gives none.
func valuesOf(values [][]float32, row int) []float32 {
	if values == nil {
		return nil
	}
	return values[row]
}
