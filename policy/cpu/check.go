package cpu

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{policy.ErrBadRequest}, args...)...)
}

func checkTokens(s checkpoint.Shape, what string, row int, tokens []int32) error {
	if len(tokens) == 0 {
		return bad("%s %d is empty", what, row)
	}
	if err := policy.CheckTokens(s.Vocab, tokens); err != nil {
		return bad("%s %d: %v", what, row, err)
	}
	return nil
}

func checkGenerate(s checkpoint.Shape, req policy.GenerateRequest) error {
	if s.ValueHead {
		return bad("a critic does not generate")
	}
	if err := req.Check(mostTop); err != nil {
		return err
	}
	for i, p := range req.Prefixes {
		if err := checkTokens(s, "prefix", i, p); err != nil {
			return err
		}
		if req.MaxTokens[i] < 1 || len(p)+req.MaxTokens[i] > s.Positions {
			return bad(
				"row %d: budget of %d tokens after a prefix of %d, the model has %d positions", i, req.MaxTokens[i],
				len(p), s.Positions,
			)
		}
	}
	for _, t := range req.Stop {
		if t < 0 || int(t) >= s.Vocab {
			return bad("stop token %d, the vocabulary has %d", t, s.Vocab)
		}
	}
	return nil
}

func checkForward(s checkpoint.Shape, req policy.ForwardRequest) error {
	if !(req.Temperature > 0) || math.IsInf(req.Temperature, 0) {
		return bad("temperature is %v", req.Temperature)
	}
	if req.Outputs&^(policy.OutLogProb|policy.OutEntropy|policy.OutValue) != 0 || req.Outputs == 0 {
		return bad("outputs %b", req.Outputs)
	}
	if s.ValueHead && req.Outputs != policy.OutValue {
		return bad("a critic gives values, not log-probabilities or entropies")
	}
	if !s.ValueHead && req.Outputs.Has(policy.OutValue) {
		return bad("values asked of the %s, which has no value head", req.Role)
	}
	for i, seq := range req.Sequences {
		if err := checkTokens(s, "sequence", i, seq); err != nil {
			return err
		}
		if len(seq) > s.Positions {
			return bad("sequence %d has %d tokens, the model has %d positions", i, len(seq), s.Positions)
		}
	}
	return req.CheckShared()
}

func checkCotangents(lengths []int, outputs policy.Outputs, c policy.Cotangents) error {
	for _, f := range []struct {
		name string
		out  policy.Outputs
		rows [][]float32
	}{
		{
			"log-probability", policy.OutLogProb, c.LogProbs,
		}, {"entropy", policy.OutEntropy, c.Entropies}, {"value", policy.OutValue, c.Values},
	} {
		if f.rows == nil {
			continue
		}
		if !outputs.Has(f.out) {
			return bad("%s cotangents for a pass that kept no such output", f.name)
		}
		if len(f.rows) != len(lengths) {
			return bad("%s cotangents of %d rows for %d sequences", f.name, len(f.rows), len(lengths))
		}
		for i, r := range f.rows {
			if len(r) != lengths[i] {
				return bad("%s cotangents of row %d: %d tokens for %d", f.name, i, len(r), lengths[i])
			}
		}
	}
	return nil
}

// newOutputs allocates zeroed rows for the outputs that the request asks for.
func newOutputs(req policy.ForwardRequest) policy.TokenOutputs {
	rows := func(o policy.Outputs) [][]float32 {
		if !req.Outputs.Has(o) {
			return nil
		}
		out := make([][]float32, len(req.Sequences))
		for i, s := range req.Sequences {
			out[i] = make([]float32, len(s))
		}
		return out
	}
	return policy.TokenOutputs{
		LogProbs: rows(policy.OutLogProb), Entropies: rows(policy.OutEntropy), Values: rows(policy.OutValue),
	}
}

// checkFinite refuses outputs that hold a NaN or Inf.
func checkFinite(o policy.TokenOutputs) error {
	for _, f := range []struct {
		name string
		rows [][]float32
	}{{"log-probability", o.LogProbs}, {"entropy", o.Entropies}, {"value", o.Values}} {
		for i, r := range f.rows {
			for t, v := range r {
				if v-v != 0 {
					return fmt.Errorf("sequence %d token %d: %w", i, t, &policy.NonFiniteError{Name: f.name})
				}
			}
		}
	}
	return nil
}
