package servers

import (
	"context"

	"github.com/ropewalk/ropewalk/policy"
)

// ropewalk speaks to our own server (docs/serve.md). Every reply names the weights behind it.
type ropewalk struct{ *link }

func (d *ropewalk) facts(ctx context.Context) (Facts, error) {
	var models struct {
		Data []struct {
			ID       string `json:"id"`
			Length   int    `json:"max_model_len"`
			Ropewalk *struct {
				Weights      string              `json:"weights"`
				Capabilities policy.Capabilities `json:"capabilities"`
				Tokens       int                 `json:"tokens"`
				Rows         int                 `json:"rows"`
			} `json:"ropewalk"`
		} `json:"data"`
	}
	if err := d.get(ctx, "v1/models", &models); err != nil {
		return Facts{}, err
	}
	for _, m := range models.Data {
		if d.Model != "" && m.ID != d.Model {
			continue
		}
		if m.Ropewalk == nil {
			return Facts{}, d.fault("it is not ropewalk serve: its models name no weights")
		}
		c := m.Ropewalk.Capabilities
		if err := c.Validate(); err != nil {
			return Facts{}, d.fault("it states capabilities that contradict each other: %v", err)
		}
		if d.Folder == "" {
			c.Weights = policy.WeightsFixed
		}
		c.Reference = false // it is not asked for
		if c.Entropy == policy.EntropyTopK {
			c.Entropy = policy.EntropyNone
		}
		return Facts{Model: m.ID, Revision: m.Ropewalk.Weights, Dtype: "float32", Positions: m.Length,
			Tokens: max(0, m.Ropewalk.Tokens), Rows: max(0, m.Ropewalk.Rows), LogProbs: LogProbsSampling,
			Capabilities: c}, nil
	}
	return Facts{}, d.unknownModel(len(models.Data))
}

// unknownModel says that the server has not the model that the recipe names, or none at all.
func (l *link) unknownModel(others int) error {
	if l.Model == "" {
		return l.fault("it serves no model")
	}
	return l.fault("it has no model %s, only %d of other names", l.Model, others)
}

// completionReply is the part of a reply in OpenAI's form that is read, with what other servers add to it.
type completionReply struct {
	Model    string `json:"model"`
	Ropewalk struct {
		Weights string `json:"weights"`
	} `json:"ropewalk"`
	Choices []completionChoice `json:"choices"`
}

type completionChoice struct {
	Text      string    `json:"text"`
	Finish    string    `json:"finish_reason"`
	IDs       []int32   `json:"token_ids"`
	Entropies []float32 `json:"entropies"`
	LogProbs  *struct {
		Tokens   []string             `json:"tokens"`
		LogProbs []*float32           `json:"token_logprobs"`
		Top      []map[string]float32 `json:"top_logprobs"`
	} `json:"logprobs"`
}

// only returns the reply's single choice, after checking the model.
func (l *link) only(r completionReply) (completionChoice, error) {
	if l.known.Model != "" && r.Model != l.known.Model {
		return completionChoice{}, l.otherVersion("its reply is by model %q, want %s", shorten(r.Model), l.known.Model)
	}
	if len(r.Choices) != 1 {
		return completionChoice{}, l.fault("its reply has %d choices, want 1", len(r.Choices))
	}
	return r.Choices[0], nil
}

// logProbs returns the log-probabilities of a choice from the token at begin on.
func (l *link) logProbs(c completionChoice, begin int) ([]float32, error) {
	if c.LogProbs == nil {
		return nil, l.fault("its reply has no log-probabilities")
	}
	if len(c.LogProbs.LogProbs) < begin {
		return nil, l.fault("its reply has %d log-probabilities, want %d at least", len(c.LogProbs.LogProbs), begin)
	}
	out := make([]float32, 0, len(c.LogProbs.LogProbs)-begin)
	for i, p := range c.LogProbs.LogProbs[begin:] {
		if p == nil {
			return nil, l.fault("its reply has no log-probability of token %d", begin+i)
		}
		out = append(out, *p)
	}
	return out, nil
}

// complete asks for a completion, and returns its choice.
func (l *link) complete(ctx context.Context, body map[string]any, tokens int) (completionChoice, error) {
	var reply completionReply
	if err := l.generation(ctx, "v1/completions", body, tokens, &reply); err != nil {
		return completionChoice{}, err
	}
	return l.only(reply)
}

// likeliestGap asks for one token, and returns how far the log-probabilities of the two likeliest ones are apart.
func (l *link) likeliestGap(ctx context.Context, body map[string]any) (float64, error) {
	c, err := l.complete(ctx, body, 1)
	if err != nil {
		return 0, err
	}
	if c.LogProbs == nil || len(c.LogProbs.Top) != 1 || len(c.LogProbs.Top[0]) < 2 {
		return 0, l.fault("it gives no log-probabilities of the two likeliest tokens")
	}
	return gapOf(c.LogProbs.Top[0]), nil
}

// completionRequest are the fields of a request that OpenAI's form, vLLM and ropewalk serve have in common.
func (l *link) completionRequest(r row) map[string]any {
	body := map[string]any{"model": l.known.Model, "prompt": r.prefix, "max_tokens": r.maxTokens,
		"temperature": r.temperature, "logprobs": 0, "return_token_ids": true, "ignore_eos": true, "n": 1}
	if r.top > 0 { // named by their ids, because several tokens can have one text
		body["logprobs"], body["return_tokens_as_token_ids"] = r.top, true
	}
	r.limit(body)
	return body
}

// limit adds the row's stop ids and the limits of its sampling to the fields of a request.
func (r row) limit(fields map[string]any) {
	if len(r.stop) > 0 {
		fields["stop_token_ids"] = r.stop
	}
	if r.temperature > 0 && r.cut.TopK > 0 {
		fields["top_k"] = r.cut.TopK
	}
	if r.temperature > 0 && r.cut.TopP > 0 {
		fields["top_p"] = r.cut.TopP
	}
	if r.temperature > 0 && r.cut.MinP > 0 {
		fields["min_p"] = r.cut.MinP
	}
}

func (d *ropewalk) row(ctx context.Context, r row) (response, error) {
	body := d.completionRequest(r)
	body["seed"], body["return_entropies"] = r.stream, true
	var reply completionReply
	if err := d.generation(ctx, "v1/completions", body, r.maxTokens, &reply); err != nil {
		return response{}, err
	}
	if err := d.sameWeights(reply); err != nil {
		return response{}, err
	}
	c, err := d.only(reply)
	if err != nil {
		return response{}, err
	}
	out := response{tokens: c.IDs, entropies: c.Entropies}
	if out.logProbs, err = d.logProbs(c, 0); err == nil {
		out.tops, err = d.tops(c, r)
	}
	return out, err
}

// sameWeights compares the weights that a reply names with those that were published. A server that takes no new ones
// names its own as it was found, and the probe has compared them.
func (d *ropewalk) sameWeights(reply completionReply) error {
	want := d.digest
	if d.known.Capabilities.Weights == policy.WeightsFixed {
		want = d.known.Revision
	}
	if d.digest != "" && reply.Ropewalk.Weights != want {
		return d.otherVersion("its reply is by weights %.16s, want %.16s", shorten(reply.Ropewalk.Weights), want)
	}
	return nil
}

func (d *ropewalk) score(ctx context.Context, ids []int32) ([]float32, error) {
	body := map[string]any{"model": d.known.Model, "prompt": ids, "max_tokens": 0, "echo": true, "logprobs": 0}
	c, err := d.complete(ctx, body, len(ids))
	if err != nil {
		return nil, err
	}
	return d.logProbs(c, 1)
}

func (d *ropewalk) publish(ctx context.Context, v version) error {
	now, err := d.facts(ctx)
	if err != nil || now.Revision == v.digest {
		return err
	}
	path, err := d.stage(v.digest, func(to string) error { return copyCheckpoint(v.folder, to) })
	if err != nil {
		return err
	}
	var done struct {
		Ropewalk struct {
			Weights string `json:"weights"`
		} `json:"ropewalk"`
	}
	if err := d.loading(ctx, "v1/load", map[string]any{"path": path, "digest": v.digest}, &done); err != nil {
		return err
	}
	if done.Ropewalk.Weights != v.digest {
		return d.otherVersion("it has loaded weights %.16s, want %.16s", shorten(done.Ropewalk.Weights), v.digest)
	}
	return nil
}

// shorten bounds a name that a server has sent.
func shorten(text string) string {
	if len(text) > 80 {
		return text[:80] + "…"
	}
	return text
}
