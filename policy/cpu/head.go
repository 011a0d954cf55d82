package cpu

import (
	"math"

	"github.com/ropewalk/ropewalk/policy"
)

// headBlockFloats bounds the logits that exist at once, in elements per worker: 4 MiB. A block has enough rows to make
// reading the head's weights worthwhile.
const headBlockFloats = 1 << 20

// distribution summarises softmax(z/temperature) of one row of logits.
type distribution struct {
	shift   float64 // the greatest tempered logit
	logSum  float64 // log Σ e^(z/temperature − shift)
	entropy float64 // nats
}

// distribute turns the logits z in place into z/temperature − shift and writes e^ of it to e.
func distribute[T float](z, e []T, temperature float64) distribution {
	m := maxOf(z)
	sum, weighted := temper(z, e, m, T(1/temperature))
	logSum := math.Log(sum)
	return distribution{shift: float64(m) / temperature, logSum: logSum, entropy: logSum - weighted/sum}
}

// headBlock is the number of rows whose logits are computed at once.
func (m *model[T]) headBlock() int { return min(max(headBlockFloats/m.shape.Vocab, 8), 512) }

// predicting lists the token rows of c that have a successor to predict and that want accepts.
func (w *worker[T]) predicting(c *chunk, want func(row, t int) bool) []int {
	w.s.rows = w.s.rows[:0]
	for i, r := range c.row {
		if r < 0 {
			continue // a stem: leaves begin with the token whose state predicts the first one that they need
		}
		from := c.start[i] - c.offset(i)
		for t := c.start[i]; t+1 < c.start[i+1]; t++ {
			if want == nil || want(r, t-from+1) {
				w.s.rows = append(w.s.rows, t)
			}
		}
	}
	return w.s.rows
}

// normRows writes the hidden states of the given token rows after the final norm.
func (w *worker[T]) normRows(xn, out []T, rows []int) {
	h := w.m.shape.Hidden
	for i, t := range rows {
		rmsNorm(xn[i*h:(i+1)*h], out[t*h:(t+1)*h], w.m.w.norm, w.m.shape.NormEps)
	}
}

// tokenRef is the row and the token index in the request of a token row t+1 of a chunk.
type tokenRef struct{ row, token int }

func (c *chunk) places() []tokenRef {
	out := make([]tokenRef, 0, c.len())
	for i, r := range c.row {
		for t := range c.start[i+1] - c.start[i] {
			out = append(out, tokenRef{r, c.offset(i) + t})
		}
	}
	return out
}

// outputs fills the outputs of a chunk from the last layer's output.
func (w *worker[T]) outputs(c *chunk, out []T, temperature float64, to *policy.TokenOutputs) {
	rows, places := w.predicting(c, nil), c.places()
	h, v, block := w.m.shape.Hidden, w.m.shape.Vocab, w.m.headBlock()
	e := sized(&w.s.expo, v)
	for lo := 0; lo < len(rows); lo += block {
		giveWay()
		part := rows[lo:min(lo+block, len(rows))]
		xn := sized(&w.s.xn, len(part)*h)
		w.normRows(xn, out, part)
		w.values(xn, part, places, to)
		if to.LogProbs == nil && to.Entropies == nil {
			continue
		}
		logits := sized(&w.s.logits, len(part)*v)
		w.linear(logits, xn, len(part), w.m.f.head, false)
		for i, t := range part {
			z, p := logits[i*v:(i+1)*v], places[t+1]
			d := distribute(z, e, temperature)
			if to.LogProbs != nil {
				to.LogProbs[p.row][p.token] = float32(float64(z[c.tokens[t+1]]) - d.logSum)
			}
			if to.Entropies != nil {
				to.Entropies[p.row][p.token] = float32(d.entropy)
			}
		}
	}
}

// values fills the value of each predicted token, aligned as policy.OutValue says.
func (w *worker[T]) values(xn []T, rows []int, places []tokenRef, to *policy.TokenOutputs) {
	if to.Values == nil {
		return
	}
	h := w.m.shape.Hidden
	for i, t := range rows {
		p := places[t+1]
		to.Values[p.row][p.token] = float32(dot(w.m.w.value[:h], xn[i*h:(i+1)*h]) + w.m.w.value[h])
	}
}

// headBack adds the head's gradient and adds to dx (n×H, zero before) that of the last layer's output.
func (w *worker[T]) headBack(c *chunk, out, dx []T, temperature float64, co policy.Cotangents) {
	at := func(of [][]float32, row, t int) float64 {
		if of == nil {
			return 0
		}
		return float64(of[row][t])
	}
	rows := w.predicting(c, func(row, t int) bool {
		return at(co.LogProbs, row, t) != 0 || at(co.Entropies, row, t) != 0 || at(co.Values, row, t) != 0
	})
	places := c.places()
	h, v, block := w.m.shape.Hidden, w.m.shape.Vocab, w.m.headBlock()
	e := sized(&w.s.expo, v)
	for lo := 0; lo < len(rows); lo += block {
		giveWay()
		part := rows[lo:min(lo+block, len(rows))]
		xn, dxn := sized(&w.s.xn, len(part)*h), sized(&w.s.dxn, len(part)*h)
		w.normRows(xn, out, part)
		clear(dxn)
		if co.LogProbs != nil || co.Entropies != nil {
			logits := sized(&w.s.logits, len(part)*v)
			w.linear(logits, xn, len(part), w.m.f.head, false)
			for i, t := range part {
				p := places[t+1]
				logitsBack(
					logits[i*v:(i+1)*v], e, int(c.tokens[t+1]), temperature, at(co.LogProbs, p.row, p.token),
					at(co.Entropies, p.row, p.token),
				)
			}
			w.linearBack(dxn, w.grad.head, logits, xn, w.m.w.head, len(part), h, v)
		}
		for i, t := range part {
			p := places[t+1]
			x, dxr := xn[i*h:(i+1)*h], dxn[i*h:(i+1)*h]
			if g := T(at(co.Values, p.row, p.token)); g != 0 {
				axpy(dxr, w.m.w.value[:h], g)
				axpy(w.grad.value[:h], x, g)
				w.grad.value[h] += g
			}
			rmsRowBack(dx[t*h:(t+1)*h], w.grad.norm, dxr, out[t*h:(t+1)*h], w.m.w.norm, w.m.shape.NormEps)
		}
	}
}

// logitsBack turns one row of logits into its gradient, given those of the log-probability of token y and of
// the entropy: ∂logp/∂z = (1[j=y] − p)/temperature, ∂H/∂z = −p·(log p + H)/temperature.
func logitsBack[T float](z, e []T, y int, temperature, glp, gent float64) {
	d := distribute(z, e, temperature)
	norm := math.Exp(-d.logSum) / temperature
	// With log p = z − logSum: grad = p/temperature · (−glp − gent·(z − logSum + H)).
	affineMul(z, e[:len(z)], T((-glp-gent*(d.entropy-d.logSum))*norm), T(-gent*norm))
	z[y] += T(glp / temperature)
}
