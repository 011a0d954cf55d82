package servers

import (
	"context"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/internal/openai"
)

// A response that is streamed, and whose server is lost in the middle, is continued by another server after the tokens
// that have come: they were drawn from the distribution of the same version. Our own server's responses are not: they
// follow from the row's seed, and are asked for from the beginning. So are responses whose likeliest tokens are wanted,
// which are not streamed.

// and is a response with the tokens of another after its own.
func (r response) and(more response) response {
	return response{tokens: slices.Concat(r.tokens, more.tokens), logProbs: concat(r.logProbs, more.logProbs),
		entropies: concat(r.entropies, more.entropies), tops: slices.Concat(r.tops, more.tops), finish: more.finish}
}

// concat keeps nil where a server gives no numbers.
func concat(a, b []float32) []float32 {
	if len(a) == 0 {
		return b
	}
	return slices.Concat(a, b)
}

// after is the row that continues a response.
func (r row) after(begun response) row {
	if n := len(begun.tokens); n > 0 {
		r.prefix, r.maxTokens = slices.Concat(r.prefix, begun.tokens), r.maxTokens-n
		r.stream += uint64(n) << 1 // other draws than those of the tokens before
	}
	return r
}

// believable reports whether the tokens that came before an error are the beginning of a response: the connection was
// lost, and they are what checkResponse accepts. A server that has answered nonsense is not believed.
func (l *link) believable(ctx context.Context, vocab int, r row, out response, err error) bool {
	n := len(out.tokens)
	if kind := kindOf(err); ctx.Err() == nil && kind != openai.Broken && kind != openai.Hung {
		return false
	}
	if n == 0 || n >= r.maxTokens || out.finish != "" || r.top > 0 || l.known.Capabilities.RowSeeds {
		return false
	}
	stopped := slices.ContainsFunc(out.tokens, func(id int32) bool {
		return id < 0 || int(id) >= vocab || slices.Contains(r.stop, id)
	})
	return !stopped && l.checkNumbers("log-probability", out.logProbs, n, math.Inf(-1), 0) == nil
}
