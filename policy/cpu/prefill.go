package cpu

import "context"

// prefill runs each distinct prefix once and hands its keys, values and last state to all rows that have it.
func (g *generation[T]) prefill(ctx context.Context) error {
	leader, unique := g.leaders()
	cost := make([]int, len(unique))
	for i, r := range unique {
		cost[i] = len(g.req.Prefixes[r])
	}
	shares := deal(cost, g.team.parts)
	err := g.team.run(func(part int) error {
		var rows []int
		for _, i := range shares[part] {
			rows = append(rows, unique[i])
		}
		for _, c := range packChunks(g.req.Prefixes, rows) {
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
			to := &g.live[i]
			from := leader[to.row]
			to.cached = len(g.req.Prefixes[to.row])
			copy(g.s.x[i*d.H:(i+1)*d.H], from.state)
			if from.base == to.base {
				continue
			}
			for j := range g.caches {
				g.caches[j].copyRow(to.base, from.base, to.cached, d)
			}
		}
		return nil
	})
}

// prefillChunk runs a chunk of prefixes and stores what their leaders need.
func (g *generation[T]) prefillChunk(w *worker[T], c *chunk, leader map[int]*prefixLeader[T]) {
	d := w.m.dims()
	a := w.m.newActs(sized(&w.s.arena, w.m.actsSize(c.len(), false)), c.len(), false)
	w.forward(c, a, func(layer int, k, qkv []T) {
		for i, r := range c.row {
			g.caches[layer].store(leader[r].base, 0, k[c.start[i]*d.K:c.start[i+1]*d.K], qkv[c.start[i]*(d.Q+2*d.K):], d)
		}
	})
	for i, r := range c.row {
		leader[r].state = append([]T(nil), a.out[(c.start[i+1]-1)*d.H:c.start[i+1]*d.H]...)
	}
}

// prefixLeader is the first row with some prefix: where its cache lies, and the state after the prefix.
type prefixLeader[T float] struct {
	base  int
	state []T
}

// leaders finds for every row the first one with the same prefix, and lists those first ones.
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
			p = &prefixLeader[T]{base: l.base}
			seen[string(key)] = p
			unique = append(unique, l.row)
		}
		of[l.row] = p
	}
	return of, unique
}
