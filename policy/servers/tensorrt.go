package servers

import (
	"context"

	"github.com/ropewalk/ropewalk/policy"
)

// tensorrt speaks to TensorRT-LLM's trtllm-serve by its completions: token ids in, and with detokenize false also out.
// The server refuses fields that it does not know. It scores no given tokens, so its own draws are compared with our
// forward pass; and it takes new weights from memory alone, which this package does not have, so that its weights never
// change.
type tensorrt struct{ *link }

func (d *tensorrt) facts(ctx context.Context) (Facts, error) {
	id, _, version, err := d.identify(ctx)
	if err != nil {
		return Facts{}, err
	}
	f, err := d.explore(ctx, d, d.gap, Facts{Model: id, Revision: "tensorrt-llm " + version})
	f.Capabilities.Weights, f.Capabilities.TopLogProbs = policy.WeightsFixed, 0 // tops are by the tokens' texts
	return f, err
}

// gap has entries by the tokens' texts, so that tokens of the same text are one of them; of five, the same two are left
// at both temperatures.
func (d *tensorrt) gap(ctx context.Context, temperature float64) (float64, error) {
	body := d.request(row{prefix: probePrefix, maxTokens: 1, temperature: temperature})
	body["logprobs"] = 5
	return d.likeliestGap(ctx, body)
}

func (d *tensorrt) request(r row) map[string]any {
	body := d.completionRequest(r)
	delete(body, "return_token_ids")
	body["detokenize"], body["include_stop_str_in_output"] = false, true
	body["add_special_tokens"], body["seed"], body["logprobs"] = false, r.stream>>1, 1
	return body
}

func (d *tensorrt) row(ctx context.Context, r row) (response, error) {
	return d.completed(ctx, r, d.request(r), d.part)
}

// part reads the tokens of a reply.
func (d *tensorrt) part(_ row, reply completionReply) (response, error) {
	c, err := d.only(reply)
	if err != nil {
		return response{}, err
	}
	out := response{tokens: c.IDs}
	out.logProbs, err = d.logProbs(c, 0)
	return out, err
}

// drawn are tokens that the server draws after the probe, and what it says about them.
func (d *tensorrt) drawn(ctx context.Context, probe []int32, tokens int) (response, error) {
	return d.row(ctx, row{prefix: probe, maxTokens: tokens, temperature: 1, stream: 1 << 1})
}

// score returns nothing: the server scores no given tokens (drawn).
func (d *tensorrt) score(context.Context, []int32) ([]float32, error) { return nil, nil }

func (d *tensorrt) publish(context.Context, version) error { return nil }
