package cpu

import (
	"math"

	"github.com/ropewalk/ropewalk/policy"
)

// prefixRun is a run of a row's prefix: tokens from…to.
type prefixRun[T float] struct {
	row      *batchRow[T]
	from, to int
}

// pieces takes as much of the waiting rows' prefixes as fits in one chunk, in the order in which the rows came. A row
// waits for the next step if a prefix that is being read shares more with it than what is kept.
func (b *batch[T]) pieces() ([]prefixRun[T], error) {
	var out []prefixRun[T]
	left := chunkTokens
	for _, r := range b.waiting {
		if left == 0 {
			break
		}
		if !r.begun {
			if !r.score && b.aheadOf(r, out) {
				continue
			}
			if r.begun = true; !r.score {
				if err := b.reuse(r); err != nil {
					return nil, err
				}
			}
			if r.score {
				r.scores = make([]policy.BatchScore, len(r.prefix)-1)
			}
		}
		p := prefixRun[T]{row: r, from: r.cached, to: min(r.cached+left, len(r.prefix))}
		left -= p.to - p.from
		out = append(out, p)
	}
	return out, nil
}

// aheadOf reports whether one of the pieces' rows will soon have more of a row's prefix than there is now.
func (b *batch[T]) aheadOf(r *batchRow[T], pieces []prefixRun[T]) bool {
	prefix := r.prefix[:len(r.prefix)-1]
	now := -1
	for _, p := range pieces {
		c := common(p.row.prefix, prefix)
		if c < cacheBlock {
			continue
		}
		if now < 0 {
			now, _, _ = b.longest(prefix)
		}
		if c > now {
			return true
		}
	}
	return false
}

// read runs pieces of prefixes through all layers. Parts share the tokens, whichever rows they belong to, and each
// layer begins when all parts have stored the keys and values that its attention reads.
func (b *batch[T]) read(pieces []prefixRun[T]) error {
	total := 0
	for _, p := range pieces {
		total += p.to - p.from
	}
	shares := make([]*reading[T], b.team.parts)
	for part := range shares {
		cut := rangeOfPart(total, part, b.team.parts, 1)
		shares[part] = b.newReading(b.r.workers[part], pieces, cut)
	}
	last := b.r.model.shape.Layers - 1
	for i := -1; i <= last; i++ {
		err := b.team.run(func(part int) error {
			s := shares[part]
			if s == nil {
				return nil
			}
			if i >= 0 && i < last {
				s.attend(i)
			}
			if i == last {
				s.end()
				return nil
			}
			s.store(i + 1)
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, p := range pieces {
		p.row.cached = p.to
	}
	return nil
}

// reading is one part's share of the pieces.
type reading[T float] struct {
	b    *batch[T]
	w    *worker[T]
	runs []prefixRun[T]
	c    *chunk
	a    *acts[T]
}

// newReading makes the reading of the tokens lo…hi of all pieces; nil if there are none.
func (b *batch[T]) newReading(w *worker[T], pieces []prefixRun[T], cut interval) *reading[T] {
	if cut.lo == cut.hi {
		return nil
	}
	r := &reading[T]{b: b, w: w, c: &chunk{start: []int{0}}}
	at := 0
	for _, p := range pieces {
		n := p.to - p.from
		from, to := p.from+max(cut.lo-at, 0), p.from+min(cut.hi-at, n)
		if at += n; from >= to {
			continue
		}
		r.runs = append(r.runs, prefixRun[T]{p.row, from, to})
		r.c.tokens = append(r.c.tokens, p.row.prefix[from:to]...)
		r.c.start = append(r.c.start, len(r.c.tokens))
		r.c.row = append(r.c.row, len(r.c.row))
		r.c.past = append(r.c.past, from)
	}
	r.a = w.m.newActs(sized(&w.s.arena, w.m.actsSize(r.c.len(), false)), r.c.len(), false)
	w.embedRows(r.a.layers[0].x, r.c.tokens)
	return r
}

// store computes a layer's queries, keys and values, and stores the latter two.
func (r *reading[T]) store(layer int) {
	d, l := r.w.m.dims(), &r.a.layers[layer]
	r.w.project(l, layer, r.c.len())
	k := r.w.rotateChunk(l, layer, r.c)
	for i, p := range r.runs {
		lo, hi := r.c.start[i], r.c.start[i+1]
		r.b.caches[layer].store(p.row.at, p.from, k[lo*d.K:hi*d.K], l.qkv[lo*(d.Q+2*d.K):], d)
	}
}

// attend computes the rest of a layer.
func (r *reading[T]) attend(layer int) {
	d, l := r.w.m.dims(), &r.a.layers[layer]
	for i, p := range r.runs {
		lo, hi := r.c.start[i], r.c.start[i+1]
		r.b.caches[layer].attendRows(r.w, l.att[lo*d.Q:hi*d.Q], r.w.s.q[lo*d.Q:hi*d.Q], p.row.at, p.from, d)
	}
	r.w.finish(l, layer, r.c.len(), r.a.after(layer))
}

// end computes the last layer for the tokens whose output is needed: the last one of each prefix, and all tokens of
// prefixes that are scored.
func (r *reading[T]) end() {
	d, last := r.w.m.dims(), r.w.m.shape.Layers-1
	l, c := &r.a.layers[last], &r.b.caches[last]
	n := 0
	var places []prefixRun[T] // the row and position of each output
	for i, p := range r.runs {
		lo, from := r.c.start[i], p.from
		whole := p.to == len(p.row.prefix)
		if !p.row.score {
			if !whole {
				continue
			}
			from = p.to - 1
		}
		q := r.w.s.q[(lo+from-p.from)*d.Q : r.c.start[i+1]*d.Q]
		copy(l.x[n*d.H:], l.x[(lo+from-p.from)*d.H:r.c.start[i+1]*d.H])
		att := l.att[n*d.Q : (n+p.to-from)*d.Q]
		if p.row.score {
			c.attendRows(r.w, att, q, p.row.at, from, d)
		}
		if whole {
			c.attend(r.w, att[len(att)-d.Q:], q[len(q)-d.Q:], p.row.at, p.to, d)
		}
		for t := from; t < p.to; t++ {
			places = append(places, prefixRun[T]{p.row, t, t + 1})
		}
		n += p.to - from
	}
	if n == 0 {
		return
	}
	r.w.finish(l, last, n, r.a.out)
	r.outputs(places)
}

// outputs keeps the states after whole prefixes, and scores the tokens that follow the others.
func (r *reading[T]) outputs(places []prefixRun[T]) {
	h, v, block := r.w.m.shape.Hidden, r.w.m.shape.Vocab, r.w.m.headBlock()
	var rows []int
	for i, p := range places {
		switch {
		case p.to < len(p.row.prefix):
			rows = append(rows, i)
		case p.row.budget > 0:
			p.row.state = append([]T(nil), r.a.out[i*h:(i+1)*h]...)
		}
	}
	e := sized(&r.w.s.expo, v)
	for lo := 0; lo < len(rows); lo += block {
		part := rows[lo:min(lo+block, len(rows))]
		xn := sized(&r.w.s.xn, len(part)*h)
		r.w.normRows(xn, r.a.out, part)
		logits := sized(&r.w.s.logits, len(part)*v)
		r.w.linear(logits, xn, len(part), r.w.m.f.head, false)
		for i, at := range part {
			z, p := logits[i*v:(i+1)*v], places[at]
			d := distribute(z, e, 1)
			logp := float64(z[p.row.prefix[p.to]]) - d.logSum
			if math.IsNaN(logp) || math.IsInf(logp, 0) {
				p.row.err = &policy.NonFiniteError{Name: "log-probability"}
				continue
			}
			s := policy.BatchScore{LogProb: float32(logp)}
			if p.row.top > 0 {
				s.Top = likeliest(p.row.top, z, nil, d.logSum)
			}
			p.row.scores[p.from] = s
		}
	}
}
