package cpu

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/ropewalk/ropewalk/policy"
)

// cacheBytes bounds the keys and values that one part holds at once; further rows wait for the next wave.
const cacheBytes = 1 << 29

// liveRow is one row that still generates.
type liveRow struct {
	row    int // of the request
	base   int // where its tokens begin in the caches, in tokens
	cached int // tokens whose keys and values are there
	rng    *rand.Rand
}

// generation is one part's share of a Generate call.
type generation[T float] struct {
	w      *worker[T]
	req    *policy.GenerateRequest
	stop   []bool // [V]
	res    *policy.Generated
	caches []cache[T] // [layer]
	live   []liveRow
	hidden []T // live × H, each row's last state
}

// run generates the given rows of the request, in waves that fit the cache.
func (g *generation[T]) run(ctx context.Context, rows []int) error {
	m := g.w.m
	perToken := 2 * m.dims().K * m.shape.Layers * 4
	budget := max(cacheBytes/perToken, 1)
	for len(rows) > 0 {
		n, tokens := 0, 0
		for n < len(rows) && (n == 0 || tokens+g.reserve(rows[n]) <= budget) {
			tokens += g.reserve(rows[n])
			n++
		}
		if err := g.wave(ctx, rows[:n], tokens); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// reserve is the most tokens that a row can hold in the caches.
func (g *generation[T]) reserve(row int) int {
	return roundUp(len(g.req.Prefixes[row]) + g.req.MaxTokens[row])
}

func (g *generation[T]) wave(ctx context.Context, rows []int, tokens int) error {
	d, layers := g.w.m.dims(), g.w.m.shape.Layers
	g.caches = slices.Grow(g.caches[:0], layers)[:layers]
	for i := range g.caches {
		g.caches[i].reset(tokens, d)
	}
	g.live = g.live[:0]
	base := 0
	for _, r := range rows {
		s := g.req.Streams[r]
		g.live = append(g.live, liveRow{row: r, base: base, rng: rand.New(rand.NewPCG(s, streamIncrement))})
		base += g.reserve(r)
	}
	if err := g.prefill(ctx); err != nil {
		return err
	}
	for {
		if err := g.sample(); err != nil {
			return err
		}
		if len(g.live) == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		g.step()
	}
}

// streamIncrement is the second seed word of every row's PCG; the first is the row's stream.
const streamIncrement = 0x9E3779B97F4A7C15

// prefill runs each distinct prefix once and hands its keys, values and last state to all rows that have it.
func (g *generation[T]) prefill(ctx context.Context) error {
	w, d := g.w, g.w.m.dims()
	leader, unique := g.leaders()
	sized(&g.hidden, len(g.live)*d.H)
	for _, c := range packChunks(g.req.Prefixes, unique) {
		if err := ctx.Err(); err != nil {
			return err
		}
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
	for i := range g.live {
		l := &g.live[i]
		from := leader[l.row]
		l.cached = len(g.req.Prefixes[l.row])
		copy(g.hidden[i*d.H:(i+1)*d.H], from.state)
		if from.base == l.base {
			continue
		}
		for j := range g.caches {
			g.caches[j].copyRow(l.base, from.base, l.cached, d)
		}
	}
	return nil
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

// step runs the last token of every live row through all layers.
func (g *generation[T]) step() {
	w, d, n := g.w, g.w.m.dims(), len(g.live)
	a := w.m.newActs(sized(&w.s.arena, w.m.actsSize(n, false)), n, false)
	tokens := w.s.rows[:0]
	for _, l := range g.live {
		t := g.res.Tokens[l.row]
		tokens = append(tokens, int(t[len(t)-1]))
	}
	w.s.rows = tokens
	for i, t := range tokens {
		copy(a.layers[0].x[i*d.H:(i+1)*d.H], w.m.w.embed[t*d.H:])
	}
	width := d.Q + 2*d.K
	q, k := sized(&w.s.q, n*d.Q), sized(&w.s.k, n*d.K)
	for i := range a.layers {
		l := &a.layers[i]
		w.project(l, i, n)
		for j, r := range g.live {
			qj, kj, qkv := q[j*d.Q:(j+1)*d.Q], k[j*d.K:(j+1)*d.K], l.qkv[j*width:(j+1)*width]
			w.rotateRow(qj, kj, qkv, i, r.cached)
			g.caches[i].store(r.base, r.cached, kj, qkv, d)
			g.caches[i].attend(w, l.att[j*d.Q:(j+1)*d.Q], qj, r.base, r.cached+1, d)
		}
		w.finish(l, i, n, a.after(i))
	}
	copy(sized(&g.hidden, n*d.H), a.out)
	for j := range g.live {
		g.live[j].cached++
	}
}
