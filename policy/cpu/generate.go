package cpu

import (
	"context"
	"math/rand/v2"
	"sync/atomic"

	"github.com/ropewalk/ropewalk/policy"
)

// cacheBytes bounds the keys and values that each part's share of rows holds at once; further rows wait for the
// next wave.
const cacheBytes = 1 << 29

// liveRow is one row that still generates.
type liveRow struct {
	row    int // of the request
	at     region
	cached int // tokens whose keys and values are there
	rng    *rand.Rand
	ended  bool
}

// generation is one Generate call.
type generation[T float] struct {
	r      *resident[T]
	team   *team
	req    *policy.GenerateRequest
	stop   []bool // [V]
	res    *policy.Generated
	caches []cache[T] // [layer]
	memory []T        // of the caches
	live   []liveRow
	s      states[T]
	taken  atomic.Int64 // what parts have taken of the present phase's work, one thing at a time
}

func (r *resident[T]) generate(ctx context.Context, req *policy.GenerateRequest) (policy.Generated, error) {
	n := len(req.Prefixes)
	res := policy.Generated{
		Tokens: make([][]int32, n), LogProbs: make([][]float32, n), Entropies: make([][]float32, n),
		Finish: make([]policy.Finish, n),
	}
	g := &generation[T]{
		r: r, team: newTeam(len(r.workers)), req: req, stop: make([]bool, r.model.shape.Vocab), res: &res,
	}
	defer g.team.stop()
	for _, t := range req.Stop {
		g.stop[t] = true
	}
	longest := 0
	for i := range n {
		longest = max(longest, len(req.Prefixes[i])+req.MaxTokens[i])
	}
	r.model.rope.grow(longest)
	if _, own := r.workers[0].mm.(*ownMatmul[T]); own {
		if err := r.model.f.pack(g.team); err != nil {
			return res, err
		}
	}
	return res, g.run(ctx)
}

// run generates all rows of the request, in waves that fit the cache.
func (g *generation[T]) run(ctx context.Context) error {
	m := g.r.model
	perToken := 2 * m.dims().K * m.shape.Layers * 4
	budget := max(g.team.parts*(cacheBytes/perToken), 1)
	for row := 0; row < len(g.req.Prefixes); {
		n, tokens := 0, 0
		for row+n < len(g.req.Prefixes) && (n == 0 || tokens+g.reserve(row+n) <= budget) {
			tokens += g.reserve(row + n)
			n++
		}
		if err := g.wave(ctx, row, row+n, tokens); err != nil {
			return err
		}
		row += n
	}
	return nil
}

// reserve returns the largest number of tokens that the caches can hold for a row.
func (g *generation[T]) reserve(row int) int {
	return roundUp(len(g.req.Prefixes[row]) + g.req.MaxTokens[row])
}

// wave generates rows lo…hi of the request. They need the given number of tokens in the caches.
func (g *generation[T]) wave(ctx context.Context, lo, hi, tokens int) error {
	d, layers := g.r.model.dims(), g.r.model.shape.Layers
	g.caches = newCaches(&g.memory, layers, tokens, d, g.r.workers[0].mm)
	g.live = g.live[:0]
	base := 0
	for r := lo; r < hi; r++ {
		s := g.req.Streams[r]
		g.live = append(
			g.live, liveRow{row: r, at: region{base, g.reserve(r)}, rng: rand.New(rand.NewPCG(s, streamIncrement))},
		)
		base += g.reserve(r)
	}
	g.s.reset(len(g.live), d)
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
		if err := g.step(); err != nil {
			return err
		}
	}
}

// streamIncrement is the second seed word of every row's PCG; the first is the row's stream.
const streamIncrement = 0x9E3779B97F4A7C15
