package cpu

import (
	"cmp"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/policy"
)

// drop drops the live rows that have ended. States are not moved, because the next step begins with the tokens.
func (g *decoding[T]) drop() {
	keep := g.live[:0]
	for _, row := range g.live {
		if !row.ended {
			keep = append(keep, row)
		}
	}
	clear(g.live[len(keep):])
	g.live = keep
}

// draw samples the next token of every live row from its last state and records it.
func (g *decoding[T]) draw() error {
	v := g.r.model.shape.Vocab
	if g.byColumns() {
		logits := sized(&g.s.logits, len(g.live)*v)
		if err := g.columns(g.normOut, func(l lot[T]) { g.head(l, logits) }); err != nil {
			return err
		}
		return g.rows(func(l lot[T]) error {
			g.choices(l, logits[l.rows.lo*v:])
			return nil
		})
	}
	return g.rows(func(l lot[T]) error {
		all, block := l.rows, l.w.m.headBlock()
		for lo := all.lo; lo < all.hi; lo += block {
			l.rows = interval{lo, min(lo+block, all.hi)}
			logits := sized(&l.w.s.logits, (l.rows.hi-lo)*v)
			g.normOut(l)
			g.head(l, logits)
			g.choices(l, logits)
		}
		return nil
	})
}

// normOut computes the input of head.
func (g *decoding[T]) normOut(l lot[T]) { l.norm(g.s.x, l.w.m.w.norm) }

// head writes the lot's rows and columns of the logits; the first row is the lot's.
func (g *decoding[T]) head(l lot[T], logits []T) {
	h := l.w.m.shape.Hidden
	xn := l.w.s.xn[l.rows.lo*h:]
	l.rows = interval{0, l.rows.hi - l.rows.lo}
	l.linear(logits, xn, l.w.m.f.head, false)
}

// choices draws a token for each of the lot's rows from its logits; the first logits belong to the lot's first row.
func (g *decoding[T]) choices(l lot[T], logits []T) {
	v := l.w.m.shape.Vocab
	e := sized(&l.w.s.expo, v)
	for i := l.rows.lo; i < l.rows.hi; i++ {
		row, z := g.live[i], logits[:v]
		logits = logits[v:]
		d := distribute(z, e, cmp.Or(row.sampling.temperature, 1))
		var token int
		var left []int32 // by a truncation; nil = all
		if s := row.sampling; s.temperature > 0 && s.truncation.Active() {
			l.w.s.ids = truncate(s.truncation, z, e, l.w.s.ids)
			left = l.w.s.ids
			token, d = chooseOf(left, z, e, row)
		} else {
			token = choose(z, e, row)
		}
		logp := float64(z[token]) - d.logSum
		if math.IsNaN(logp) || math.IsInf(logp, 0) {
			row.err, row.ended = &policy.NonFiniteError{Name: "log-probability"}, true
			continue
		}
		if row.top > 0 && (row.keep == 0 || len(row.tokens) < row.keep) {
			row.likeliest = likeliest(row.top, z, left, d.logSum)
			row.keepLikeliest()
		}
		row.record(int32(token), logp, d.entropy)
	}
}

// choose picks the token: the first greatest logit at temperature 0, else by inversion of the cumulative
// distribution in the order of ids, with one uniform draw of the row's stream.
func choose[T float](z, e []T, row *liveRow) int {
	if row.sampling.temperature == 0 {
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

// record appends one token to the row and notes whether the row has ended.
func (r *liveRow) record(token int32, logp, entropy float64) {
	r.tokens = append(r.tokens, token)
	r.logProbs = append(r.logProbs, float32(logp))
	r.entropies = append(r.entropies, float32(entropy))
	switch {
	case slices.Contains(r.sampling.stop, token):
		r.finish, r.ended = policy.FinishStop, true
	case len(r.tokens) == r.budget:
		r.finish, r.ended = policy.FinishLength, true
	}
}
