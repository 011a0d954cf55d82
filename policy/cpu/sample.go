package cpu

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/policy"
)

// sample draws the next token of every live row from its last state, records it, and drops the rows that end.
func (g *generation[T]) sample() error {
	if err := g.draw(); err != nil {
		return err
	}
	// States are not moved, because the next step begins with the tokens.
	keep := g.live[:0]
	for _, row := range g.live {
		if !row.ended {
			keep = append(keep, row)
		}
	}
	g.live = keep
	return nil
}

// draw samples a token for every live row.
func (g *generation[T]) draw() error {
	v := g.r.model.shape.Vocab
	if g.byColumns() {
		logits := sized(&g.s.logits, len(g.live)*v)
		if err := g.columns(g.normOut, func(l lot[T]) { g.head(l, logits) }); err != nil {
			return err
		}
		return g.rows(func(l lot[T]) error { return g.choices(l, logits[l.rows.lo*v:]) })
	}
	return g.rows(func(l lot[T]) error {
		all, block := l.rows, l.w.m.headBlock()
		for lo := all.lo; lo < all.hi; lo += block {
			l.rows = interval{lo, min(lo+block, all.hi)}
			logits := sized(&l.w.s.logits, (l.rows.hi-lo)*v)
			g.normOut(l)
			g.head(l, logits)
			if err := g.choices(l, logits); err != nil {
				return err
			}
		}
		return nil
	})
}

// normOut computes the input of head.
func (g *generation[T]) normOut(l lot[T]) { l.norm(g.s.x, l.w.m.w.norm) }

// head writes the lot's rows and columns of the logits; the first row is the lot's.
func (g *generation[T]) head(l lot[T], logits []T) {
	h := l.w.m.shape.Hidden
	xn := l.w.s.xn[l.rows.lo*h:]
	l.rows = interval{0, l.rows.hi - l.rows.lo}
	l.linear(logits, xn, l.w.m.f.head, false)
}

// choices draws a token for each of the lot's rows from its logits; the first logits belong to the lot's first row.
func (g *generation[T]) choices(l lot[T], logits []T) error {
	v, temperature := l.w.m.shape.Vocab, g.req.Temperature
	if temperature == 0 {
		temperature = 1
	}
	e := sized(&l.w.s.expo, v)
	for i := l.rows.lo; i < l.rows.hi; i++ {
		row, z := &g.live[i], logits[:v]
		logits = logits[v:]
		d := distribute(z, e, temperature)
		var token int
		if g.req.Temperature > 0 && g.req.Truncation.Active() {
			l.w.s.ids = truncate(g.req.Truncation, z, e, l.w.s.ids)
			token, d = chooseOf(l.w.s.ids, z, e, row)
		} else {
			token = g.choose(z, e, row)
		}
		logp := float64(z[token]) - d.logSum
		if math.IsNaN(logp) || math.IsInf(logp, 0) {
			return fmt.Errorf("generate row %d: %w", row.row, &policy.NonFiniteError{Name: "log-probability"})
		}
		row.ended = g.record(row.row, int32(token), logp, d.entropy)
	}
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

// chooseOf is choose among some ids, which ascend. It returns the distribution over them alone.
func chooseOf[T float](ids []int32, z, e []T, row *liveRow) (int, distribution) {
	var sum, weighted float64
	for _, id := range ids {
		sum += float64(e[id])
		weighted += float64(e[id]) * float64(z[id])
	}
	u := row.rng.Float64() * sum
	token := 0
	for _, id := range ids {
		token = int(id)
		if u -= float64(e[id]); u < 0 {
			break
		}
	}
	logSum := math.Log(sum)
	return token, distribution{logSum: logSum, entropy: max(logSum-weighted/sum, 0)}
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
