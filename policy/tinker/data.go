package tinker

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// pass is the rows of one forward pass, and of the backward pass that may follow.
type pass struct {
	rows [][]int32
	// logProbs are those of the forward pass, and cotangents d(loss)/d(logp), both with an unused first entry.
	logProbs, cotangents [][]float32
}

// tensor is a list of numbers as the API has it.
func tensor[T int32 | float32](data []T) map[string]any {
	dtype := "float32"
	if _, whole := any(data).([]int32); whole {
		dtype = "int64"
	}
	return map[string]any{"data": data, "dtype": dtype, "shape": []int{len(data)}}
}

// datum is a sequence with its targets, the tokens but the first, and further numbers for each target.
func datum(ids []int32, numbers map[string][]float32) map[string]any {
	inputs := map[string]any{"target_tokens": tensor(ids[1:])}
	for name, values := range numbers {
		inputs[name] = tensor(values)
	}
	return map[string]any{"model_input": modelInput(ids[:len(ids)-1]), "loss_fn_inputs": inputs}
}

func modelInput(ids []int32) map[string]any {
	return map[string]any{"chunks": []any{map[string]any{"type": "encoded_text", "tokens": ids}}}
}

// The losses that the API and this package have in common.
const (
	crossEntropy       = "cross_entropy"
	importanceSampling = "importance_sampling"
)

// passed is the result of a forward pass.
type passed struct {
	Outputs []struct {
		LogProbs *struct {
			Data []*float32 `json:"data"`
		} `json:"logprobs"`
	} `json:"loss_fn_outputs"`
	Metrics map[string]*float64 `json:"metrics"`
}

// forward returns the log-probabilities of all tokens but the first; the first entry of each row is 0.
func (s *session) forward(ctx context.Context, m *model, rows [][]int32) ([][]float32, error) {
	out := make([][]float32, len(rows))
	var data []any
	var asked []int
	for i, ids := range rows {
		out[i] = make([]float32, len(ids))
		if len(ids) > 1 {
			data = append(data, datum(ids, map[string][]float32{"weights": slices.Repeat([]float32{1}, len(ids)-1)}))
			asked = append(asked, i)
		}
	}
	if len(data) == 0 {
		return out, nil
	}
	var got passed
	body := map[string]any{"model_id": m.id, "seq_id": m.next(),
		"forward_input": map[string]any{"data": data, "loss_fn": crossEntropy}}
	if err := s.future(ctx, "api/v1/forward", body, &got, repeatable); err != nil {
		return nil, err
	}
	if len(got.Outputs) != len(data) {
		return nil, s.fault("its reply to api/v1/forward has the outputs of %d sequences, want %d", len(got.Outputs),
			len(data))
	}
	for k, i := range asked {
		if got.Outputs[k].LogProbs == nil {
			return nil, s.fault("its reply to api/v1/forward has no log-probabilities of sequence %d", i)
		}
		if err := s.fill(out[i][1:], got.Outputs[k].LogProbs.Data); err != nil {
			return nil, fmt.Errorf("sequence %d: %w", i, err)
		}
	}
	return out, nil
}

// roundingAbove is how far above 0 rounding may take a log-probability.
const roundingAbove = 1e-3

// fill takes log-probabilities from a reply after checking them.
func (l *link) fill(to []float32, from []*float32) error {
	if len(from) != len(to) {
		return l.fault("it gives %d log-probabilities, want %d", len(from), len(to))
	}
	for i, v := range from {
		if v == nil {
			return l.fault("it gives no log-probability of token %d", i)
		}
		p := float64(*v)
		if math.IsNaN(p) || math.IsInf(p, 0) || p > roundingAbove {
			return l.fault("it gives %v as log-probability of token %d", p, i)
		}
		to[i] = float32(min(p, 0))
	}
	return nil
}

// backward sends data for the gradient. The server may have added it if this fails, unless refused says so.
func (s *session) backward(ctx context.Context, m *model, loss string, data []any) error {
	var got passed
	body := map[string]any{"model_id": m.id, "seq_id": m.next(),
		"forward_backward_input": map[string]any{"data": data, "loss_fn": loss}}
	m.dirty = true
	if err := s.future(ctx, "api/v1/forward_backward", body, &got, once); err != nil {
		return err
	}
	if len(got.Outputs) != len(data) {
		return s.fault("its reply to api/v1/forward_backward has the outputs of %d sequences, want %d",
			len(got.Outputs), len(data))
	}
	return nil
}

// adam are the parameters of one step.
type adam struct {
	LR    float64 `json:"learning_rate"`
	Beta1 float64 `json:"beta1"`
	Beta2 float64 `json:"beta2"`
	Eps   float64 `json:"eps"`
	Clip  float64 `json:"grad_clip_norm,omitempty"`
}

// step takes an optimiser step, and returns what the server measures of it.
func (s *session) step(ctx context.Context, m *model, a adam) (map[string]*float64, error) {
	var done struct {
		Metrics map[string]*float64 `json:"metrics"`
	}
	body := map[string]any{"model_id": m.id, "seq_id": m.next(), "adam_params": a, "type": "optim_step"}
	if err := s.future(ctx, "api/v1/optim_step", body, &done, once); err != nil {
		return nil, err
	}
	m.dirty = false
	return done.Metrics, nil
}
