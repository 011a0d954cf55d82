package cpu

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/policy"
)

// sample draws the next token of every live row from its last state, records it, and drops the rows that end.
func (g *generation[T]) sample() error {
	w := g.w
	h, v, block := w.m.shape.Hidden, w.m.shape.Vocab, w.m.headBlock()
	temperature := g.req.Temperature
	if temperature == 0 {
		temperature = 1
	}
	e, keep := sized(&w.s.expo, v), g.live[:0]
	for lo := 0; lo < len(g.live); lo += block {
		n := min(block, len(g.live)-lo)
		xn, logits := sized(&w.s.xn, n*h), sized(&w.s.logits, n*v)
		rmsNorm(xn, g.hidden[lo*h:(lo+n)*h], w.m.w.norm, w.m.shape.NormEps)
		w.linear(logits, xn, w.m.w.head, n, h, v, false)
		for i := range n {
			row := g.live[lo+i]
			z := logits[i*v : (i+1)*v]
			d := distribute(z, e, temperature)
			token := g.choose(z, e, &row)
			logp := float64(z[token]) - d.logSum
			if math.IsNaN(logp) || math.IsInf(logp, 0) {
				return fmt.Errorf("generate row %d: %w", row.row, &policy.NonFiniteError{Name: "log-probability"})
			}
			if !g.record(row.row, int32(token), logp, d.entropy) {
				keep = append(keep, row)
			}
		}
	}
	g.live = keep
	return nil
}

// choose picks the token: the first greatest logit at temperature 0, else by inversion of the cumulative
// distribution in the order of ids, with one uniform draw of the row's stream.
func (g *generation[T]) choose(z, e []T, row *liveRow) int {
	if g.req.Temperature == 0 {
		best := 0
		for j, v := range z {
			if v > z[best] {
				best = j
			}
		}
		return best
	}
	var sum float64
	for _, v := range e {
		sum += float64(v)
	}
	u := row.rng.Float64() * sum
	last := 0
	for j, v := range e {
		if v > 0 {
			u -= float64(v)
			last = j
			if u < 0 {
				break
			}
		}
	}
	return last
}

// record appends one token to a row and reports whether the row has ended.
func (g *generation[T]) record(row int, token int32, logp, entropy float64) bool {
	r := g.res
	r.Tokens[row] = append(r.Tokens[row], token)
	r.LogProbs[row] = append(r.LogProbs[row], float32(logp))
	r.Entropies[row] = append(r.Entropies[row], float32(entropy))
	switch {
	case g.stop[token]:
		r.Finish[row] = policy.FinishStop
	case len(r.Tokens[row]) == g.req.MaxTokens[row]:
		r.Finish[row] = policy.FinishLength
	default:
		return false
	}
	return true
}
