package servers

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/policy"
)

// mostTop is the number of likeliest tokens that servers name, unless they are started with a lower limit.
const mostTop = 20

// leftOut is the log-probability that vLLM gives for tokens that a truncation leaves out, or less.
const leftOut = -9999

// likeliest returns the greatest n of the values, the greatest first, without those of tokens that are left out.
func likeliest(values []float32, n int) []float32 {
	out := slices.DeleteFunc(slices.Clone(values), func(v float32) bool {
		return v <= leftOut || math.IsInf(float64(v), -1)
	})
	slices.SortFunc(out, func(a, b float32) int { return cmp.Compare(b, a) })
	return out[:min(n, len(out))]
}

// asked is the number of a response's n tokens at which the likeliest tokens are wanted.
func (r row) asked(n int) int {
	if r.top == 0 {
		return 0
	}
	return min(n, r.topTokens)
}

// tops reads the likeliest tokens of a choice. A sampled token that is not one of them comes in addition.
func (l *link) tops(c completionChoice, r row) ([][]float32, error) {
	n := r.asked(len(c.IDs))
	if n == 0 {
		return nil, nil
	}
	if c.LogProbs == nil || len(c.LogProbs.Top) < n {
		return nil, l.fault("its reply does not name the likeliest tokens at the first %d positions", n)
	}
	out := make([][]float32, n)
	for i := range out {
		var values []float32
		for _, v := range c.LogProbs.Top[i] {
			values = append(values, v)
		}
		out[i] = likeliest(values, r.top)
	}
	return out, nil
}

// tops reads the likeliest tokens of a reply of n tokens.
func (d *sglang) tops(reply sglangReply, r row, n int) ([][]float32, error) {
	if n = r.asked(n); n == 0 {
		return nil, nil
	}
	if len(reply.Meta.Top) < n {
		return nil, d.fault("its reply does not name the likeliest tokens at the first %d positions", n)
	}
	out := make([][]float32, n)
	for i := range out {
		named := slices.DeleteFunc(slices.Clone(reply.Meta.Top[i]), func(e []json.RawMessage) bool {
			return len(e) > 0 && string(e[0]) == "null" // a truncation has left it out
		})
		var values []float32
		for _, e := range named {
			v, _, err := d.entry(e)
			if err != nil {
				return nil, err
			}
			values = append(values, v)
		}
		out[i] = likeliest(values, r.top)
	}
	return out, nil
}

// tops returns the likeliest tokens after a prefix, and after each token of a part of the response that begins at the
// position at. What the server samples from is no part of its reply if it is not the model's own distribution, or if a
// token's bytes are no whole character. It then follows from the distribution over all tokens.
func (d *llama) tops(ctx context.Context, r row, prefix, ids []int32, at int, reply llamaReply) ([][]float32, error) {
	n := r.asked(at+len(ids)) - min(at, r.asked(at+len(ids)))
	if n == 0 {
		return nil, nil
	}
	certain, err := d.certain(reply, len(ids))
	if err != nil {
		return nil, err
	}
	out := make([][]float32, n)
	for i := range out {
		var values []float32
		if p := certain[i]; p != nil && !r.tempered() && len(p.Top) > 0 {
			for _, t := range p.Top {
				values = append(values, float32(max(t.LogProb, -math.MaxFloat32)))
			}
		} else {
			all, err := d.distribution(ctx, slices.Concat(prefix, ids[:i]))
			if err != nil {
				return nil, err
			}
			if r.tempered() {
				all = sampled(all, r.temperature, r.cut)
			}
			for _, v := range all {
				values = append(values, float32(v))
			}
		}
		out[i] = likeliest(values, r.top)
	}
	return out, nil
}

// checkTops checks the likeliest tokens of a response of n tokens.
func (l *link) checkTops(r row, out *response, n int) error {
	if len(out.tops) != r.asked(n) {
		return l.fault("its response of %d tokens names the likeliest at %d positions, want %d", n, len(out.tops),
			r.asked(n))
	}
	for i, top := range out.tops {
		if len(top) == 0 {
			return l.fault("its response names no likeliest token at position %d", i)
		}
		if err := l.checkNumbers("log-probability of a likeliest token", top, len(top), math.Inf(-1), 0); err != nil {
			return err
		}
	}
	return nil
}

// top returns the likeliest tokens of all responses; nil if they were not asked for.
func top(req policy.GenerateRequest, found []response) [][][]float32 {
	if req.Top == 0 {
		return nil
	}
	out := make([][][]float32, len(found))
	for i, r := range found {
		out[i] = r.tops
	}
	return out
}
