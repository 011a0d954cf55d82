package cpu

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/policy"
)

// cacheBytes bounds the keys and values that each part's share of rows holds at once; further rows wait for the
// next wave.
const cacheBytes = 1 << 29

// generation is one Generate call.
type generation[T float] struct {
	*decoding[T]
	req *policy.GenerateRequest
	res *policy.Generated
}

func (r *resident[T]) generate(ctx context.Context, req *policy.GenerateRequest) (policy.Generated, error) {
	n, longest := len(req.Prefixes), 0
	res := policy.Generated{
		Tokens: make([][]int32, n), LogProbs: make([][]float32, n), Entropies: make([][]float32, n),
		Finish: make([]policy.Finish, n),
	}
	for i := range n {
		longest = max(longest, len(req.Prefixes[i])+req.MaxTokens[i])
	}
	if req.Top > 0 {
		res.Top = make([][][]float32, n)
	}
	d, err := newDecoding(r, longest)
	if err != nil {
		return res, err
	}
	defer d.team.stop()
	g := &generation[T]{decoding: d, req: req, res: &res}
	return res, g.run(ctx)
}

// run generates all rows of the request, in waves that fit the cache.
func (g *generation[T]) run(ctx context.Context) error {
	perToken := g.r.tokenFloats() * 4
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
	how := &sampling{temperature: g.req.Temperature, truncation: g.req.Truncation, stop: g.req.Stop}
	rows := make([]*liveRow, hi-lo)
	base := 0
	for i := range rows {
		r := lo + i
		rows[i] = &liveRow{
			row: r, at: region{base, g.reserve(r)}, rng: rowRandom(g.req.Streams[r]), sampling: how,
			budget: g.req.MaxTokens[r],
		}
		if g.req.Top > 0 {
			rows[i].top, rows[i].keep = g.req.Top, g.req.TopTokens
		}
		base += g.reserve(r)
	}
	g.live = append(g.live[:0], rows...)
	g.s.reset(len(g.live), d)
	if err := g.prefill(ctx); err != nil {
		return err
	}
	for {
		if err := g.draw(); err != nil {
			return err
		}
		for _, row := range g.live {
			if row.err != nil {
				return fmt.Errorf("generate row %d: %w", row.row, row.err)
			}
		}
		if g.drop(); len(g.live) == 0 {
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := g.step(); err != nil {
			return err
		}
	}
	for _, r := range rows {
		g.res.Tokens[r.row], g.res.LogProbs[r.row], g.res.Entropies[r.row] = r.tokens, r.logProbs, r.entropies
		g.res.Finish[r.row] = r.finish
		if g.res.Top != nil {
			g.res.Top[r.row] = r.tops
		}
	}
	return nil
}
