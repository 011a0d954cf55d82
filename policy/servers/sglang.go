package servers

import (
	"cmp"
	"context"
	"encoding/json"
)

// sglang speaks to SGLang by its native API. Its replies name the version of the weights.
type sglang struct {
	*link
	names bool // replies name the version that was published
}

func (d *sglang) facts(ctx context.Context) (Facts, error) {
	var model struct {
		Path    string `json:"model_path"`
		Version string `json:"weight_version"`
	}
	if err := d.get(ctx, "get_model_info", &model); err != nil {
		return Facts{}, err
	}
	var server struct {
		Name    string `json:"served_model_name"`
		Dtype   string `json:"dtype"`
		Version string `json:"version"`
		Context int    `json:"context_length"`
		Most    int    `json:"max_req_input_len"`
		Tokens  int    `json:"max_total_num_tokens"`
	}
	if err := d.get(ctx, "get_server_info", &server); err != nil {
		return Facts{}, err
	}
	name := cmp.Or(server.Name, model.Path)
	if d.Model != "" && d.Model != name {
		return Facts{}, d.fault("it serves model %q, want %s", shorten(name), d.Model)
	}
	return d.explore(ctx, d, d.gap, Facts{Model: name, Revision: "sglang " + server.Version, Dtype: server.Dtype,
		Positions: max(server.Context, server.Most), Tokens: max(0, server.Tokens)})
}

// sglangReply is the part of a reply that is read. A log-probability is a list: the number, the token, its text.
type sglangReply struct {
	IDs  []int32 `json:"output_ids"`
	Meta struct {
		Version string                `json:"weight_version"`
		Finish  json.RawMessage       `json:"finish_reason"`
		Count   int                   `json:"completion_tokens"` // so far, in a stream
		Output  [][]json.RawMessage   `json:"output_token_logprobs"`
		Input   [][]json.RawMessage   `json:"input_token_logprobs"`
		Top     [][][]json.RawMessage `json:"output_top_logprobs"`
	} `json:"meta_info"`
}

// entry reads a log-probability and its token.
func (d *sglang) entry(e []json.RawMessage) (float32, int32, error) {
	var v float32
	var id int32
	if len(e) < 2 || string(e[0]) == "null" {
		return 0, 0, d.fault("its reply lacks a log-probability")
	}
	if json.Unmarshal(e[0], &v) != nil || json.Unmarshal(e[1], &id) != nil {
		return 0, 0, d.fault("its reply has a log-probability that is no number and token")
	}
	return v, id, nil
}

func (d *sglang) gap(ctx context.Context, temperature float64) (float64, error) {
	body := d.request(row{prefix: probePrefix, maxTokens: 1, temperature: temperature})
	body["top_logprobs_num"] = 2
	var reply sglangReply
	if err := d.generation(ctx, "generate", body, 1, &reply); err != nil {
		return 0, err
	}
	if len(reply.Meta.Top) != 1 || len(reply.Meta.Top[0]) < 2 {
		return 0, d.fault("it gives no log-probabilities of the two likeliest tokens")
	}
	two, err := d.entries(reply.Meta.Top[0][:2])
	if err != nil {
		return 0, err
	}
	return apart(two.logProbs[0], two.logProbs[1]), nil
}

func (d *sglang) request(r row) map[string]any {
	sampling := map[string]any{"temperature": r.temperature, "max_new_tokens": r.maxTokens, "ignore_eos": true,
		"skip_special_tokens": false, "no_stop_trim": true, "sampling_seed": seed32(r.stream) >> 1}
	r.limit(sampling)
	out := map[string]any{"input_ids": r.prefix, "sampling_params": sampling, "return_logprob": true}
	if r.top > 0 {
		out["top_logprobs_num"] = r.top
	}
	return out
}

func (d *sglang) row(ctx context.Context, r row) (response, error) {
	body := d.request(r)
	if d.streams(r) {
		return d.streamed(ctx, r, body)
	}
	var reply sglangReply
	if err := d.generation(ctx, "generate", body, r.maxTokens, &reply); err != nil {
		return response{}, err
	}
	if err := d.sameVersion(reply); err != nil {
		return response{}, err
	}
	out, err := d.entries(reply.Meta.Output)
	if err != nil {
		return out, err
	}
	if err := d.sameIDs(reply.IDs, out); err != nil {
		return out, err
	}
	if reply.IDs != nil && len(reply.IDs) != len(out.tokens) { // some versions leave them out
		return out, d.fault("its reply has %d tokens and %d log-probabilities", len(reply.IDs), len(out.tokens))
	}
	out.tops, err = d.tops(reply, r, len(out.tokens))
	return out, err
}

// entries reads tokens with their log-probabilities.
func (d *sglang) entries(list [][]json.RawMessage) (out response, err error) {
	for _, e := range list {
		v, id, err := d.entry(e)
		if err != nil {
			return out, err
		}
		out.tokens, out.logProbs = append(out.tokens, id), append(out.logProbs, v)
	}
	return out, nil
}

// sameIDs compares the ids that a reply should have with the ids of its log-probabilities.
func (d *sglang) sameIDs(ids []int32, out response) error {
	for i := range min(len(ids), len(out.tokens)) {
		if ids[i] != out.tokens[i] {
			return d.fault("its reply has the log-probability of token %d in the place of that of %d", out.tokens[i],
				ids[i])
		}
	}
	return nil
}

// sameVersion compares the version that a reply names with the one that was published, if it is known.
func (d *sglang) sameVersion(r sglangReply) error {
	if d.digest != "" && d.names && r.Meta.Version != d.digest {
		return d.otherVersion("its reply is by weights %.16s, want %.16s", shorten(r.Meta.Version), d.digest)
	}
	return nil
}

func (d *sglang) score(ctx context.Context, ids []int32) ([]float32, error) {
	body := d.request(row{prefix: ids, maxTokens: 1, temperature: 1})
	body["logprob_start_len"] = 0
	var reply sglangReply
	if err := d.generation(ctx, "generate", body, len(ids), &reply); err != nil {
		return nil, err
	}
	if len(reply.Meta.Input) != len(ids) {
		return nil, d.fault("its reply has %d log-probabilities of a prompt of %d tokens", len(reply.Meta.Input),
			len(ids))
	}
	out, err := d.entries(reply.Meta.Input[1:])
	if err != nil {
		return nil, err
	}
	return out.logProbs, d.sameIDs(ids[1:], out)
}

func (d *sglang) publish(ctx context.Context, v version) error {
	path, err := d.stage(v.digest, func(to string) error { return writeUntied(v.checkpoint, to, d.Dtype) })
	if err != nil {
		return err
	}
	var done struct {
		Success bool   `json:"success"`
		Message string `json:"message"`
	}
	if err := d.loading(ctx, "update_weights_from_disk", map[string]any{"model_path": path, "weight_version": v.digest,
		"flush_cache": true}, &done); err != nil {
		return err
	}
	if !done.Success {
		return d.fault("it has not loaded version %.16s: %s", v.digest, shorten(done.Message))
	}
	var model struct {
		Version string `json:"weight_version"`
	}
	err = d.get(ctx, "get_model_info", &model)
	d.names = model.Version == v.digest // servers before 0.5 know no versions
	return err
}
