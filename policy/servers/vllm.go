package servers

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"

	"github.com/ropewalk/ropewalk/internal/openai"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/scheduler"
)

// vllm speaks to vLLM by OpenAI's completions with vLLM's additions. New weights need VLLM_SERVER_DEV_MODE=1.
type vllm struct{ *link }

func (d *vllm) facts(ctx context.Context) (Facts, error) {
	id, positions, version, err := d.identify(ctx)
	if err != nil {
		return Facts{}, err
	}
	return d.explore(ctx, d, d.gap, Facts{Model: id, Revision: "vllm " + version, Positions: positions,
		Tokens: d.cache(ctx)})
}

// cacheInfo are the labels of vLLM's gauge that describe its KV cache.
var cacheInfo = regexp.MustCompile(`(?m)^vllm:cache_config_info\{(.*)\}`)

// cache is how many tokens of vLLM's KV cache are given out; 0 if it does not say.
func (d *vllm) cache(ctx context.Context) int {
	data, err := d.client.Do(ctx, openai.Call{Method: http.MethodGet, Path: "metrics",
		Limit: min(seconds(d.Seconds), factLimit)})
	if err != nil {
		return 0 // metrics can be switched off; the bound on rows holds then
	}
	labels := cacheInfo.FindSubmatch(data)
	if labels == nil {
		return 0
	}
	number := func(name string) int {
		m := regexp.MustCompile(`\b` + name + `="(\d+)"`).FindSubmatch(labels[1])
		if m == nil {
			return 0
		}
		n, _ := strconv.Atoi(string(m[1])) // 0 if it is too large to be true
		return n
	}
	tokens, err := scheduler.Capacity(number("num_gpu_blocks"), number("block_size"), scheduler.DefaultSafety)
	if err != nil {
		return 0
	}
	return tokens
}

// identify asks for the models and the program's version, and settles on the model that the settings name, or on the
// first. positions is 0 if the server does not say how long its context is.
func (l *link) identify(ctx context.Context) (id string, positions int, version string, err error) {
	var models struct {
		Data []struct {
			ID     string `json:"id"`
			Length int    `json:"max_model_len"`
		} `json:"data"`
	}
	if err := l.get(ctx, "v1/models", &models); err != nil {
		return "", 0, "", err
	}
	var revision struct {
		Version string `json:"version"`
	}
	if err := l.get(ctx, "version", &revision); err != nil {
		return "", 0, "", err
	}
	for _, m := range models.Data {
		if l.Model == "" || m.ID == l.Model {
			l.known.Model = m.ID
			return m.ID, m.Length, revision.Version, nil
		}
	}
	return "", 0, "", l.unknownModel(len(models.Data))
}

func (d *vllm) gap(ctx context.Context, temperature float64) (float64, error) {
	body := d.completionRequest(row{prefix: probePrefix, maxTokens: 1, temperature: temperature})
	body["logprobs"], body["return_tokens_as_token_ids"] = 2, true // tokens of the same text would be one entry
	return d.likeliestGap(ctx, body)
}

func (d *vllm) row(ctx context.Context, r row) (response, error) {
	if r.cut.MinP > 0 && (policy.Truncation{TopP: r.cut.TopP}).Active() {
		return response{}, bad("vLLM applies min-p before top-p, which leaves other tokens than top-p before min-p")
	}
	body := d.completionRequest(r)
	body["seed"], body["add_special_tokens"], body["skip_special_tokens"] = r.stream>>1, false, false
	if d.digest != "" { // what was computed with the weights of other versions is not used again
		body["cache_salt"] = d.digest
	}
	return d.completed(ctx, r, body, d.part)
}

// part reads the tokens of a reply.
func (d *vllm) part(r row, reply completionReply) (response, error) {
	c, err := d.only(reply)
	if err != nil {
		return response{}, err
	}
	if c.IDs == nil {
		return response{}, d.fault("its reply has no token_ids; it is older than this program needs")
	}
	out := response{tokens: c.IDs}
	if out.logProbs, err = d.logProbs(c, 0); err == nil {
		out.tops, err = d.tops(c, r)
	}
	return out, err
}

func (d *vllm) score(ctx context.Context, ids []int32) ([]float32, error) {
	body := map[string]any{"model": d.known.Model, "prompt": ids, "max_tokens": 1, "temperature": 0,
		"prompt_logprobs": 0, "add_special_tokens": false}
	var reply struct {
		Model   string `json:"model"`
		Choices []struct {
			Prompt []map[string]struct {
				LogProb float32 `json:"logprob"`
			} `json:"prompt_logprobs"`
		} `json:"choices"`
	}
	if err := d.generation(ctx, "v1/completions", body, len(ids), &reply); err != nil {
		return nil, err
	}
	if reply.Model != d.known.Model {
		return nil, d.otherVersion("its reply is by model %q, want %s", shorten(reply.Model), d.known.Model)
	}
	if len(reply.Choices) != 1 || len(reply.Choices[0].Prompt) != len(ids) {
		return nil, d.fault("its reply has no log-probability for each token of the prompt")
	}
	var out []float32
	for i, id := range ids[1:] {
		v, ok := reply.Choices[0].Prompt[i+1][fmt.Sprint(id)]
		if !ok {
			return nil, d.fault("its reply has no log-probability of token %d of the prompt", i+1)
		}
		out = append(out, v.LogProb)
	}
	return out, nil
}

// publish has the weights read from the folder, and what was computed with the old ones forgotten.
func (d *vllm) publish(ctx context.Context, v version) error {
	path, err := d.stage(v.digest, func(to string) error { return writeUntied(v.checkpoint, to, d.Dtype) })
	if err != nil {
		return err
	}
	body := map[string]any{"method": "reload_weights", "kwargs": map[string]any{"weights_path": path}}
	if err := d.loading(ctx, "collective_rpc", body, nil); err != nil {
		if kindOf(err) == openai.NotFound {
			return fmt.Errorf("%w; start vLLM with VLLM_SERVER_DEV_MODE=1, which lets it take new weights", err)
		}
		return err
	}
	var done struct {
		Success *bool `json:"success"` // absent before 0.11
	}
	if err := d.loading(ctx, "reset_prefix_cache", nil, &done); err != nil {
		return err
	}
	if done.Success != nil && !*done.Success {
		return d.fault("it keeps what it has computed with other weights, because it still answers requests; give " +
			"each run servers of its own")
	}
	return nil
}
