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
	var out policy.TokenOutputs
	all := make([]int, len(req.Sequences))
	for i := range all {
		all[i] = i
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
		if err := checkOutputs(got, part.Sequences, req.Outputs); err != nil {
			return policy.TokenOutputs{}, err
		}
		for _, x := range []struct {
			asked policy.Outputs
			from  [][]float32
			to    *[][]float32
		}{
			{policy.OutLogProb, got.LogProbs, &out.LogProbs}, {policy.OutEntropy, got.Entropies, &out.Entropies},
			{policy.OutValue, got.Values, &out.Values},
		} {
			if !req.Outputs.Has(x.asked) {
				continue
			}
			if *x.to == nil {
				*x.to = make([][]float32, len(all))
			}
			for k, i := range rows {
				(*x.to)[i] = x.from[k]
			}
		}
		if progress != nil {
			progress(done+1, len(micros))
		}
	}
	return out, nil
}
