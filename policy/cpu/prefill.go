package cpu

import "context"

// prefill runs each distinct prefix once and hands its keys, values and last state to all rows that have it.
func (g *generation[T]) prefill(ctx context.Context) error {
	leader, unique := g.leaders()
	all := make([]family, len(unique))
	for i, r := range unique {
		all[i] = family{rows: []int{r}, cost: len(g.req.Prefixes[r])}
	}
	shares := assignFamilies(all, g.team.parts)
	err := g.team.run(func(part int) error {
		for _, c := range packChunks(g.req.Prefixes, shares[part]) {
			if err := ctx.Err(); err != nil {
				return err
			}
			g.prefillChunk(g.r.workers[part], c, leader)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return g.rows(func(l lot[T]) error {
		d := l.w.m.dims()
		for i := l.rows.lo; i < l.rows.hi; i++ {
			to := g.live[i]
			from := leader[to.row]
			to.cached = len(g.req.Prefixes[to.row])
			copy(g.s.x[i*d.H:(i+1)*d.H], from.state)
			if from.at == to.at {
				continue
			}
			for j := range g.caches {
				g.caches[j].copyRegion(to.at, from.at, to.cached, d)
			}
		}
		return nil
	})
}

// prefillChunk runs a chunk of prefixes and stores what their leaders need. The last layer computes only keys, values
// and the output of each prefix's last token.
func (g *generation[T]) prefillChunk(w *worker[T], c *chunk, leader map[int]*prefixLeader[T]) {
	d, last := w.m.dims(), w.m.shape.Layers-1
	a := w.m.newActs(sized(&w.s.arena, w.m.actsSize(c.len(), false)), c.len(), false)
	keep := func(layer int, k []T) {
		for i, r := range c.row {
			lo, hi := c.start[i], c.start[i+1]
			g.caches[layer].store(leader[r].at, 0, k[lo*d.K:hi*d.K], a.layers[layer].qkv[lo*(d.Q+2*d.K):], d)
		}
	}
	w.embedRows(a.layers[0].x, c.tokens)
	for i := range last {
		keep(i, w.layer(c, a, i))
	}
	l := &a.layers[last]
	w.project(l, last, c.len())
	keep(last, w.rotateChunk(l, last, c))
	for i, r := range c.row {
		t := c.start[i+1] - 1
		copy(l.x[i*d.H:(i+1)*d.H], l.x[t*d.H:])
		g.caches[last].attend(w, l.att[i*d.Q:(i+1)*d.Q], w.s.q[t*d.Q:(t+1)*d.Q], leader[r].at, t+1-c.start[i], d)
	}
	w.finish(l, last, len(c.row), a.out)
	for i, r := range c.row {
		leader[r].state = append([]T(nil), a.out[i*d.H:(i+1)*d.H]...)
	}
}

// prefixLeader is the first row with some prefix: its region, and the state after the prefix.
type prefixLeader[T float] struct {
	at    region
	state []T
}

// leaders finds for every row the first row with the same prefix, and lists these first rows.
func (g *generation[T]) leaders() (map[int]*prefixLeader[T], []int) {
	seen := map[string]*prefixLeader[T]{}
	of := map[int]*prefixLeader[T]{}
	var unique []int
	var key []byte
	for _, l := range g.live {
		key = key[:0]
		for _, t := range g.req.Prefixes[l.row] {
			key = append(key, byte(t), byte(t>>8), byte(t>>16), byte(t>>24))
		}
		p, ok := seen[string(key)]
		if !ok {
			p = &prefixLeader[T]{at: l.at}
			seen[string(key)] = p
			unique = append(unique, l.row)
		}
		of[l.row] = p
	}
	return of, unique
}
