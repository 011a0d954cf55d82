package servers

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/ropewalk/ropewalk/internal/openai"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// llama speaks to llama.cpp's llama-server, by its own API. As a *router* (--models-dir) it loads the file that this
// package writes to that folder (llama_publish.go); otherwise its weights never change.
//
// Three of its habits matter here. It ends a response at the model's own end tokens, also where the request does not
// name them: the response is then continued. It knows stop texts and no stop ids: a stop text is the text of a stop id,
// and a match of other tokens is continued, too. And it leaves out the log-probabilities of tokens whose bytes are no
// whole character yet, and of stop texts: they are asked for again, one by one (llama_score.go).
type llama struct {
	*link
	router bool
	// tokens are the published model's; nil if they are unknown.
	tokens tokenizer.Codec
	vocab  int
	texts  func(id int32) string // the text that the server has for a token; "" = unknown
}

// llamaProps is the part of GET /props that is read.
type llamaProps struct {
	Role     string `json:"role"`
	Build    string `json:"build_info"`
	Alias    string `json:"model_alias"`
	Dtype    string `json:"model_ftype"`
	Settings struct {
		Context int `json:"n_ctx"`
	} `json:"default_generation_settings"`
	Slots int `json:"total_slots"`
}

func (d *llama) facts(ctx context.Context) (Facts, error) {
	var props llamaProps
	if err := d.get(ctx, "props", &props); err != nil {
		return Facts{}, err
	}
	d.router = props.Role == "router"
	f := Facts{Model: d.Model, Revision: props.Build, LogProbs: LogProbsSampling,
		Capabilities: capabilitiesOf(LogProbsSampling)}
	// post_sampling_probs are the probabilities of what all samplers have left.
	f.Capabilities.TopP, f.Capabilities.TopK, f.Capabilities.MinP = true, true, true
	switch {
	case d.router && (d.Model == "" || d.Folder == ""):
		return Facts{}, d.fault("it is a router (--models-dir); set folder to that folder, and model to the name of " +
			"the file, without .gguf, that is to be written there")
	case !d.router && d.Folder != "":
		return Facts{}, d.fault("it takes no new weights; start llama-server with --models-dir and no model, or " +
			"leave folder out")
	case d.router:
		f.Capabilities.Weights, f.Dtype = policy.WeightsReload, d.Dtype
		return f, nil // the context is known once a model is loaded
	}
	if f.Model == "" {
		f.Model = props.Alias
	} else if f.Model != props.Alias {
		return Facts{}, d.fault("it serves model %q, want %s", shorten(props.Alias), d.Model)
	}
	f.Dtype, f.Positions, f.Rows = props.Dtype, usableContext(props.Settings.Context), max(0, props.Slots)
	return f, nil
}

// usableContext is the longest prefix and response: the server stops shortly before its context is full.
func usableContext(n int) int { return max(0, n-contextLeft) }

const contextLeft = 2

// context asks a router for the context of the loaded model.
func (d *llama) context(ctx context.Context) error {
	var props llamaProps
	err := d.call(ctx, openai.Call{Method: http.MethodGet, Path: "props", Query: "model=" + url.QueryEscape(d.Model),
		Limit: min(seconds(d.Seconds), factLimit)}, &props)
	if err == nil && props.Settings.Context > 0 {
		d.known.Positions, d.known.Rows = usableContext(props.Settings.Context), max(0, props.Slots)
	}
	return err
}

// llamaReply is the part of a reply that is read.
type llamaReply struct {
	Tokens        []int32     `json:"tokens"`
	Stop          string      `json:"stop_type"`
	Probabilities []llamaProb `json:"completion_probabilities"`
}

// llamaProb is a token and its log-probability under the model, or its probability after sampling.
type llamaProb struct {
	ID      int32      `json:"id"`
	LogProb *float64   `json:"logprob"`
	Prob    *float64   `json:"prob"`
	Top     []llamaTop `json:"top_logprobs"`
}

type llamaTop struct {
	ID      int32   `json:"id"`
	LogProb float64 `json:"logprob"`
}

// value returns the log-probability.
func (p llamaProb) value() (float32, bool) {
	switch {
	case p.LogProb != nil:
		return float32(max(*p.LogProb, -math.MaxFloat32)), true
	case p.Prob != nil && *p.Prob > 0 && *p.Prob <= 1+roundingAbove:
		return float32(math.Log(*p.Prob)), true
	}
	return 0, false
}

// tempered reports whether a row's distribution is not the model's own.
func (r row) tempered() bool { return r.temperature > 0 && (r.temperature != 1 || r.cut.Active()) }

// request is what all requests to /completion have in common.
func (d *llama) request(prefix []int32, tokens int) map[string]any {
	return map[string]any{"model": d.known.Model, "prompt": prefix, "n_predict": tokens, "temperature": 1,
		"samplers": []string{"temperature"}, "n_probs": 1, "return_tokens": true, "cache_prompt": true,
		"response_fields": []string{"tokens", "stop_type", "completion_probabilities"}}
}

func (d *llama) row(ctx context.Context, r row) (response, error) {
	var out response
	for {
		left := r.maxTokens - len(out.tokens)
		prefix := slices.Concat(r.prefix, out.tokens)
		reply, err := d.complete(ctx, r, prefix, left, len(out.tokens))
		if err != nil {
			return d.come(r, out, reply), err
		}
		if n := len(reply.Tokens); n == 0 || n > left {
			return out, d.fault("its response has %d tokens, want 1 to %d", n, left)
		}
		end := slices.IndexFunc(reply.Tokens, func(id int32) bool { return slices.Contains(r.stop, id) })
		ids := reply.Tokens
		if end >= 0 { // a stop id whose text the server does not know did not stop it
			ids = ids[:end+1]
		}
		logProbs, err := d.align(ctx, r, prefix, ids, reply)
		if err != nil {
			return out, err
		}
		tops, err := d.tops(ctx, r, prefix, ids, len(out.tokens), reply)
		if err != nil {
			return out, err
		}
		out.tokens, out.logProbs = append(out.tokens, ids...), append(out.logProbs, logProbs...)
		out.tops = append(out.tops, tops...)
		if end >= 0 || len(out.tokens) >= r.maxTokens {
			return out, nil
		}
		if reply.Stop != "eos" && reply.Stop != "word" {
			return out, nil // the caller says what is wrong
		}
	}
}

// come adds the tokens of a stream that has broken off to a response: those that have come with log-probabilities.
func (d *llama) come(r row, out response, reply llamaReply) response {
	n := min(len(reply.Tokens), len(reply.Probabilities), r.maxTokens-len(out.tokens))
	for i := range n {
		v, ok := reply.Probabilities[i].value()
		if !ok || reply.Probabilities[i].ID != reply.Tokens[i] {
			return out
		}
		out.tokens, out.logProbs = append(out.tokens, reply.Tokens[i]), append(out.logProbs, v)
	}
	return out
}

// complete asks for what follows a prefix. at is the number of tokens that the response has already.
func (d *llama) complete(ctx context.Context, r row, prefix []int32, tokens, at int) (reply llamaReply, err error) {
	body := d.request(prefix, tokens)
	body["temperature"], body["seed"] = r.temperature, seed32(r.stream+uint64(at))
	if r.top > 0 {
		body["n_probs"] = r.top
	}
	if r.tempered() {
		body["post_sampling_probs"] = true
		samplers := []string{"temperature"}
		if r.cut.TopK > 0 {
			samplers, body["top_k"] = append(samplers, "top_k"), r.cut.TopK
		}
		if r.cut.TopP > 0 {
			samplers, body["top_p"] = append(samplers, "top_p"), r.cut.TopP
		}
		if r.cut.MinP > 0 {
			samplers, body["min_p"] = append(samplers, "min_p"), r.cut.MinP
		}
		body["samplers"] = samplers
	}
	if texts := d.stopTexts(r.stop); len(texts) > 0 {
		body["stop"] = texts
	}
	if d.router && d.streams(r) { // in files of others, a stream leaves tokens out whose bytes are no whole character
		return d.streamed(ctx, body, tokens)
	}
	return reply, d.generation(ctx, "completion", body, tokens, &reply)
}

// streamed reads a response as it grows: each event has some of its tokens, the last one says why it ends.
func (d *llama) streamed(ctx context.Context, body map[string]any, tokens int) (reply llamaReply, err error) {
	err = stream(ctx, d.link, "completion", body, tokens, func(part llamaReply) error {
		reply.Tokens, reply.Probabilities = append(reply.Tokens, part.Tokens...),
			append(reply.Probabilities, part.Probabilities...)
		reply.Stop = cmp.Or(part.Stop, reply.Stop)
		return nil
	})
	if err == nil && reply.Stop == "" {
		err = d.fault("its stream ends after %d tokens and does not say why", len(reply.Tokens))
	}
	return reply, err
}

// stopTexts are the texts of the stop ids that have one of their own.
func (d *llama) stopTexts(stop []int32) (out []string) {
	for _, id := range stop {
		if d.texts == nil {
			return nil
		}
		if text := d.texts(id); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// seed32 is a row's seed: the server's have 32 bits, and all ones mean a random one.
func seed32(stream uint64) uint32 {
	seed := uint32(stream ^ stream>>32)
	if seed == math.MaxUint32 {
		return 0
	}
	return seed
}

// read takes the tokenizer of a model whose file this package has not written.
func (d *llama) read(c *checkpoint.Checkpoint) error {
	d.vocab, d.tokens, d.texts = c.Shape.Vocab, nil, nil
	tokens, err := tokenizer.Read(c.Extra["tokenizer.json"])
	if err != nil {
		return nil // stop ids are then found in the responses alone
	}
	d.tokens = tokens
	d.texts = func(id int32) string {
		text := tokens.Decode([]int32{id})
		if same, ok := tokens.ID(text); !ok || same != id {
			return ""
		}
		return text
	}
	return nil
}

// publish writes the file, and has the router stop the model and start it again.
func (d *llama) publish(ctx context.Context, v version) error {
	if err := d.write(v); err != nil {
		return fmt.Errorf("server %s: folder: write version %.16s: %w", d.Name(), v.digest, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, seconds(d.LoadSeconds), d.fault("it has not loaded version %.16s in "+
		"%v", v.digest, seconds(d.LoadSeconds)))
	defer cancel()
	for _, step := range []func(context.Context) error{d.unload, d.reload, d.context} {
		if err := step(ctx); err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
	}
	return nil
}

// statuses of a router's models.
const (
	statusLoaded   = "loaded"
	statusUnloaded = "unloaded"
)

// llamaStatus is the state of a router's model. A model that the router does not know has none.
type llamaStatus struct {
	Value  string `json:"value"`
	Failed bool   `json:"failed"`
	Code   int    `json:"exit_code"`
}

// stopped reports whether the model does not run.
func (s llamaStatus) stopped() bool { return s.Value == "" || s.Value == statusUnloaded }

// status asks for the state of the model.
func (d *llama) status(ctx context.Context, query string) (status llamaStatus, err error) {
	var models struct {
		Data []struct {
			ID     string      `json:"id"`
			Status llamaStatus `json:"status"`
		} `json:"data"`
	}
	err = d.call(ctx, openai.Call{Method: http.MethodGet, Path: "models", Query: query}, &models)
	for _, m := range models.Data {
		if m.ID == d.Model {
			return m.Status, err
		}
	}
	return llamaStatus{}, err
}

// order has the router start or stop the model. It rejects what has happened already.
func (d *llama) order(ctx context.Context, path string) error {
	err := d.loading(ctx, path, map[string]any{"model": d.Model}, nil)
	if kindOf(err) == openai.Rejected {
		return nil
	}
	return err
}

// unload stops the model, if it runs, and waits until it has ended.
func (d *llama) unload(ctx context.Context) error {
	status, err := d.status(ctx, "")
	if err != nil || status.stopped() {
		return err
	}
	if err := d.order(ctx, "models/unload"); err != nil {
		return err
	}
	return poll(ctx, func() (bool, error) {
		status, err := d.status(ctx, "")
		return status.stopped(), err
	})
}

// reload makes the router look at its folder, and starts the model.
func (d *llama) reload(ctx context.Context) error {
	status, err := d.status(ctx, "reload=1")
	switch {
	case err != nil:
		return err
	case status.Value == "":
		return d.fault("its --models-dir has no %s.gguf; folder must be that folder", d.Model)
	}
	if err := d.order(ctx, "models/load"); err != nil {
		return err
	}
	return poll(ctx, func() (bool, error) {
		status, err := d.status(ctx, "")
		if err == nil && status.Failed && status.Value == statusUnloaded {
			err = d.fault("the model's process has ended with exit code %d; its log says why", status.Code)
		}
		return status.Value == statusLoaded, err
	})
}

// poll waits until done reports true.
func poll(ctx context.Context, done func() (bool, error)) error {
	for pause := 5 * time.Millisecond; ; pause = min(pause*2, 200*time.Millisecond) {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if err := openai.Wait(ctx, pause); err != nil {
			return err
		}
	}
}

// tokenText is the text of a token in the files that this package writes. No other sequence of tokens has it.
func tokenText(id int) string { return "<" + strconv.Itoa(id) + ">" }
