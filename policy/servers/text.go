package servers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// text speaks OpenAI's completions: text in, text out. Prefixes are decoded and responses encoded by the tokenizer of
// the folder that Load names, which must be that of the served model; nothing can check that.
type text struct {
	*link
	tokens tokenizer.Codec
}

func (d *text) facts(context.Context) (Facts, error) {
	return Facts{Model: d.Model, LogProbs: LogProbsNone,
		Capabilities: policy.Capabilities{Temperature: true, TopP: true}}, nil
}

func (d *text) read(c *checkpoint.Checkpoint) (err error) {
	if d.tokens, err = tokenizer.Read(c.Extra["tokenizer.json"]); err != nil {
		return fmt.Errorf("server %s: it takes text, and the folder's tokenizer.json cannot be read: %w", d.Name(), err)
	}
	return nil
}

func (d *text) row(ctx context.Context, r row) (response, error) {
	body := map[string]any{"model": d.Model, "prompt": d.tokens.Decode(r.prefix), "max_tokens": r.maxTokens,
		"temperature": r.temperature, "seed": seed32(r.stream) >> 1, "n": 1}
	if r.temperature > 0 && r.cut.TopP > 0 {
		body["top_p"] = r.cut.TopP
	}
	var stops []string
	for _, id := range r.stop {
		if text := d.tokens.Decode([]int32{id}); strings.TrimSpace(text) != "" {
			stops = append(stops, text)
		}
	}
	if len(stops) > 0 {
		body["stop"] = stops[:min(len(stops), 4)] // OpenAI's limit
	}
	c, err := d.complete(ctx, body, r.maxTokens)
	if err != nil {
		return response{}, err
	}
	return d.encode(r, c), nil
}

// encode returns a text as tokens. The stop token that ended it is not part of the text. The server has counted other
// tokens than these, so a response may be shorter than its budget.
func (d *text) encode(r row, c completionChoice) response {
	ids := d.tokens.Encode(d.client.Conceal(c.Text))
	end := slices.IndexFunc(ids, func(id int32) bool { return slices.Contains(r.stop, id) })
	switch {
	case end >= 0 && end < r.maxTokens:
		return response{tokens: ids[:end+1], finish: policy.FinishStop}
	case len(r.stop) > 0 && len(ids) < r.maxTokens && (c.Finish == "stop" || len(ids) == 0):
		return response{tokens: append(ids, r.stop[0]), finish: policy.FinishStop}
	}
	return response{tokens: ids[:min(len(ids), r.maxTokens)], finish: policy.FinishLength}
}

// score returns nothing: the server has no log-probabilities.
func (d *text) score(context.Context, []int32) ([]float32, error) { return nil, nil }

func (d *text) publish(context.Context, version) error { return nil }
