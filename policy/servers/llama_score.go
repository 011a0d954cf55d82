package servers

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"

	"github.com/ropewalk/ropewalk/internal/openai"
	"github.com/ropewalk/ropewalk/policy"
)

// forced is the bias that makes the server take a given token. The log-probabilities that it then returns are those of
// the model, without the bias.
const forced = 1e6

// align returns the log-probability of each token of a response. Those that the reply leaves out are asked for.
func (d *llama) align(ctx context.Context, r row, prefix, ids []int32, reply llamaReply) ([]float32, error) {
	certain, err := d.certain(reply, len(ids))
	if err != nil {
		return nil, err
	}
	out := make([]float32, len(ids))
	for i, id := range ids {
		if p := certain[i]; p != nil {
			v, ok := p.value()
			if !ok {
				return nil, d.fault("its reply has no log-probability of token %d", i)
			}
			out[i] = v
			continue
		}
		before := slices.Concat(prefix, ids[:i])
		if out[i], err = d.missing(ctx, r, before, id); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// certain finds the probability that belongs to each token. The reply's probabilities are in the order of its tokens,
// with gaps; one that could belong to several equal tokens is left out.
func (d *llama) certain(reply llamaReply, n int) ([]*llamaProb, error) {
	ids, probs := reply.Tokens, reply.Probabilities
	first, last := make([]int, len(probs)), make([]int, len(probs))
	for j, at := 0, 0; j < len(probs); j, at = j+1, at+1 {
		for at < len(ids) && ids[at] != probs[j].ID {
			at++
		}
		if at == len(ids) {
			return nil, d.fault("its reply has probabilities of other tokens than its response")
		}
		first[j] = at
	}
	for j, at := len(probs)-1, len(ids)-1; j >= 0; j, at = j-1, at-1 {
		for ids[at] != probs[j].ID { // there is one, as before
			at--
		}
		last[j] = at
	}
	out := make([]*llamaProb, n)
	for j := range probs {
		if first[j] == last[j] && first[j] < n {
			out[first[j]] = &probs[j]
		}
	}
	return out, nil
}

// missing asks for the log-probability of one token after a prefix, under the distribution of the row.
func (d *llama) missing(ctx context.Context, r row, before []int32, id int32) (float32, error) {
	if !r.tempered() {
		return d.token(ctx, before, id)
	}
	all, err := d.distribution(ctx, before)
	if err != nil {
		return 0, err
	}
	v, ok := sampled(all, r.temperature, r.cut)[id]
	if !ok {
		return 0, d.fault("token %d was sampled, and it is not among those that %+v leaves", id, r.cut)
	}
	return float32(v), nil
}

// token returns the log-probability of one token at temperature 1.
func (d *llama) token(ctx context.Context, before []int32, id int32) (float32, error) {
	body := d.request(before, 1)
	body["logit_bias"] = [][]any{{id, forced}}
	var reply llamaReply
	if err := d.generation(ctx, "completion", body, 1, &reply); err != nil {
		return 0, err
	}
	if len(reply.Tokens) != 1 || reply.Tokens[0] != id {
		return 0, d.fault("asked for the log-probability of token %d, it answers with tokens %v", id,
			reply.Tokens[:min(len(reply.Tokens), 4)])
	}
	if len(reply.Probabilities) == 1 {
		if v, ok := reply.Probabilities[0].value(); ok {
			return v, nil
		}
	}
	all, err := d.distribution(ctx, before) // the token's bytes are no whole character
	if err != nil {
		return 0, err
	}
	v, ok := all[id]
	if !ok {
		return 0, d.fault("its distribution over all tokens leaves token %d out", id)
	}
	return float32(v), nil
}

// distribution returns the log-probabilities of all tokens after a prefix, at temperature 1.
func (d *llama) distribution(ctx context.Context, before []int32) (map[int32]float64, error) {
	body := d.request(before, 1)
	body["n_probs"] = d.vocab
	if d.tokens != nil {
		if plain := d.tokens.Encode("a"); len(plain) > 0 { // a token with a whole character, so that there is a reply
			body["logit_bias"] = [][]any{{plain[0], forced}}
		}
	}
	// Without a tokenizer no such token is known, and another draw may bring one.
	const perEntry, draws = 1 << 10, 12
	for seed := range draws {
		body["seed"] = seed
		var reply llamaReply
		if err := d.call(ctx, openai.Call{Method: http.MethodPost, Path: "completion", Body: body,
			Bytes: leastRow + perEntry*int64(d.vocab)}, &reply); err != nil {
			return nil, err
		}
		if len(reply.Probabilities) != 1 || len(reply.Probabilities[0].Top) == 0 {
			continue
		}
		out := make(map[int32]float64, len(reply.Probabilities[0].Top))
		for _, t := range reply.Probabilities[0].Top {
			out[t.ID] = t.LogProb
		}
		return out, nil
	}
	return nil, d.fault("it gives no distribution over all tokens")
}

// sampled applies temperature and truncation to log-probabilities, as policy.Truncation says. It returns the
// log-probabilities of the tokens that are left.
func sampled(all map[int32]float64, temperature float64, cut policy.Truncation) map[int32]float64 {
	type token struct {
		id    int32
		logit float64
		p     float64
	}
	tokens := make([]token, 0, len(all))
	for id, v := range all {
		tokens = append(tokens, token{id: id, logit: v / temperature})
	}
	slices.SortFunc(tokens, func(a, b token) int {
		return cmp.Or(cmp.Compare(b.logit, a.logit), cmp.Compare(a.id, b.id))
	})
	if cut.TopK > 0 {
		tokens = tokens[:min(cut.TopK, len(tokens))]
	}
	normalise := func() {
		sum := 0.0
		for i := range tokens {
			tokens[i].p = math.Exp(tokens[i].logit - tokens[0].logit)
			sum += tokens[i].p
		}
		for i := range tokens {
			tokens[i].p /= sum
		}
	}
	normalise()
	if cut.TopP > 0 {
		sum := 0.0
		for n, t := range tokens {
			if sum += t.p; sum >= cut.TopP {
				tokens = tokens[:n+1]
				break
			}
		}
	}
	tokens = slices.DeleteFunc(tokens, func(t token) bool { return t.p < cut.MinP*tokens[0].p })
	normalise()
	out := make(map[int32]float64, len(tokens))
	for _, t := range tokens {
		out[t.id] = math.Log(t.p)
	}
	return out
}

func (d *llama) score(ctx context.Context, ids []int32) ([]float32, error) {
	out := make([]float32, 0, len(ids)-1)
	for i := 1; i < len(ids); i++ {
		v, err := d.token(ctx, ids[:i], ids[i])
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}
