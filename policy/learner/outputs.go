package learner

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/policy"
)

// Outputs asks a model for per-token outputs of whole sequences, one micro-batch at a time. The result is in the order
// of the sequences. The split into micro-batches changes it by rounding at most.
func Outputs(
	ctx context.Context, trainer policy.Trainer, req policy.ForwardRequest, microbatchTokens int, progress Progress,
) (policy.TokenOutputs, error) {
	n := len(req.Sequences)
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	out := policy.TokenOutputs{
		LogProbs: make([][]float32, n), Entropies: make([][]float32, n), Values: make([][]float32, n),
	}
	micros := pack(all, func(i int) int { return len(req.Sequences[i]) }, microbatchTokens)
	for done, rows := range micros {
		part := req
		part.Keep, part.Sequences = false, make([][]int32, len(rows))
		for k, i := range rows {
			part.Sequences[k] = req.Sequences[i]
		}
		got, err := trainer.Forward(ctx, part)
		if err != nil {
			return policy.TokenOutputs{}, fmt.Errorf("forward %d sequences of the %s: %w", len(rows), req.Role, err)
		}
		for _, x := range []struct {
			asked    policy.Outputs
			name     string
			from, to [][]float32
		}{
			{policy.OutLogProb, "log-probabilities", got.LogProbs, out.LogProbs},
			{policy.OutEntropy, "entropies", got.Entropies, out.Entropies},
			{policy.OutValue, "values", got.Values, out.Values},
		} {
			if !req.Outputs.Has(x.asked) {
				continue
			}
			if err := checkShape(x.name, x.from, part.Sequences); err != nil {
				return policy.TokenOutputs{}, err
			}
			for k, i := range rows {
				x.to[i] = x.from[k]
			}
		}
		if progress != nil {
			progress(done+1, len(micros))
		}
	}
	return asked(out, req.Outputs), nil
}

// asked drops outputs that were not requested.
func asked(out policy.TokenOutputs, outputs policy.Outputs) policy.TokenOutputs {
	if !outputs.Has(policy.OutLogProb) {
		out.LogProbs = nil
	}
	if !outputs.Has(policy.OutEntropy) {
		out.Entropies = nil
	}
	if !outputs.Has(policy.OutValue) {
		out.Values = nil
	}
	return out
}
