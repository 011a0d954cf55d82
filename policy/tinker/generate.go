package tinker

import (
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/internal/openai"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/policy"
)

// Generate samples with the current weights of a role, which are saved for sampling first.
func (e *Engine) Generate(ctx context.Context, req policy.GenerateRequest) (out policy.Generated, err error) {
	err = e.call(ctx, "generate", func() (err error) { out, err = e.generate(ctx, req); return err })
	return out, err
}

func (e *Engine) generate(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	r, err := e.loaded(req.Role)
	if err == nil {
		err = e.checkGenerate(r, req)
	}
	if err != nil {
		return policy.Generated{}, err
	}
	if err := e.sampling(ctx, r); err != nil {
		return policy.Generated{}, e.after(ctx, err)
	}
	n := len(req.Prefixes)
	found, errs := make([]sampled, n), make([]error, n)
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	room := make(chan struct{}, e.o.Server.Parallel)
	var all rescue.WaitGroup
	for i := range n {
		all.Go(func() {
			select {
			case room <- struct{}{}:
			case <-limited.Done():
				return
			}
			defer func() { <-room }()
			found[i], errs[i] = e.session.respond(limited, r, req, i)
			if errs[i] != nil && !isRejected(errs[i]) { // the server's fault: no other row can succeed either
				cancel()
			}
		})
	}
	all.Wait()
	if err := firstOf(errs); err != nil || ctx.Err() != nil {
		return policy.Generated{}, e.after(ctx, err)
	}
	out := policy.Generated{LogProbs: [][]float32{}}
	for _, s := range found {
		out.Tokens, out.LogProbs = append(out.Tokens, s.tokens), append(out.LogProbs, s.logProbs)
		out.Finish = append(out.Finish, s.finish)
	}
	return out, nil
}

func isRejected(err error) bool {
	var known *openai.Error
	return errors.As(err, &known) && known.Kind == openai.Rejected && !gone(err)
}

// firstOf returns the first row's error that is not the end of the others.
func firstOf(errs []error) error {
	for i, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	return nil
}

// sampling makes sure that the current weights can be sampled from.
func (e *Engine) sampling(ctx context.Context, r *role) (err error) {
	if err := e.published(ctx, r); err != nil {
		return err
	}
	if r.sampler == "" {
		e.samplers++
		r.sampler, err = e.session.sampler(ctx, r.path, e.samplers)
	}
	return err
}

func (e *Engine) checkGenerate(r *role, req policy.GenerateRequest) error {
	if err := req.Check(0); err != nil {
		return err
	}
	switch {
	case req.Temperature != 1 && req.Temperature != 0:
		return bad("temperature is %v, and the server's log-probabilities would be those of temperature 1",
			req.Temperature)
	case req.Truncation.Active() && req.Temperature > 0:
		return bad("the server's log-probabilities would not be those of what top-k, top-p and min-p leave")
	}
	for i, p := range req.Prefixes {
		if len(p) == 0 {
			return bad("prefix %d is empty", i)
		}
		if err := policy.CheckTokens(r.shape.Vocab, p); err != nil {
			return bad("prefix %d: %v", i, err)
		}
		if most := e.longest(r); req.MaxTokens[i] < 1 || len(p)+req.MaxTokens[i] > most {
			return bad("row %d: budget of %d tokens after a prefix of %d; %d positions are served", i, req.MaxTokens[i],
				len(p), most)
		}
	}
	if err := policy.CheckTokens(r.shape.Vocab, req.Stop); err != nil {
		return bad("stop: %v", err)
	}
	return nil
}

// sampled is a response.
type sampled struct {
	tokens   []int32
	logProbs []float32
	finish   policy.Finish
}

// respond asks for one response. A reply that cannot be believed is asked for again.
func (s *session) respond(ctx context.Context, r *role, req policy.GenerateRequest, i int) (out sampled, err error) {
	params := map[string]any{"max_tokens": req.MaxTokens[i], "seed": req.Streams[i] % (1 << 31),
		"temperature": req.Temperature, "top_k": -1, "top_p": 1}
	if len(req.Stop) > 0 {
		params["stop"] = req.Stop
	}
	body := map[string]any{"sampling_session_id": r.sampler, "num_samples": 1, "type": "sample",
		"prompt": modelInput(req.Prefixes[i]), "sampling_params": params, "prompt_logprobs": false}
	for attempt := 1; ; attempt++ {
		var got struct {
			Sequences []struct {
				Tokens   []int32    `json:"tokens"`
				LogProbs []*float32 `json:"logprobs"`
			} `json:"sequences"`
		}
		body["seq_id"] = s.rows.Add(1)
		err = s.future(ctx, "api/v1/asample", body, &got, repeatable)
		if err == nil && len(got.Sequences) != 1 {
			err = s.fault("its reply to api/v1/asample has %d sequences, want 1", len(got.Sequences))
		}
		if err == nil {
			out = sampled{tokens: got.Sequences[0].Tokens, logProbs: make([]float32, len(got.Sequences[0].Tokens))}
			if out.finish, err = policy.Ending(r.shape.Vocab, req.MaxTokens[i], req.Stop, out.tokens, ""); err != nil {
				err = s.fault("its response%v", err)
			} else {
				err = s.fill(out.logProbs, got.Sequences[0].LogProbs)
			}
		}
		if err == nil || ctx.Err() != nil || !isFault(err) || gone(err) || attempt >= s.Attempts {
			return out, err
		}
	}
}
