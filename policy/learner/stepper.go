package learner

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// Progress receives the number of finished micro-batches of an update or a cloning.
type Progress func(done, total int)

// stepper takes one model of a trainer through forward, backward and step.
type stepper struct {
	trainer     policy.Trainer
	role        policy.Role
	temperature float64
	outputs     policy.Outputs
	progress    Progress
	done, total int
	limit       int      // tokens of a micro-batch
	smaller     *Smaller // nil until the engine runs out of memory
}

// evaluate turns the outputs of the sequences named by rows into cotangents.
type evaluate func(rows []int, out policy.TokenOutputs) (policy.Cotangents, error)

// share is the part of an optimiser step's mini-batch whose rows come from one source.
type share struct {
	micros   [][]int
	sequence func(int) []int32
	eval     evaluate
	forget   func()        // resets the sums of eval before the micro-batches run again
	leading  func(int) int // the tokens before a row's first loss token, whose computation rows may share; nil: none do
}

// request asks for the outputs of rows that their backward pass needs.
func (s share) request(st *stepper, rows []int) policy.ForwardRequest {
	req := policy.ForwardRequest{Role: st.role, Temperature: st.temperature, Outputs: st.outputs, Keep: true}
	for _, i := range rows {
		req.Sequences = append(req.Sequences, s.sequence(i))
		if s.leading != nil {
			req.Shared = append(req.Shared, s.leading(i))
		}
	}
	return req
}

// minibatch accumulates the gradients of each share's micro-batches and takes one step. After any failure it discards
// the partial gradient. If the engine runs out of memory, minibatch tries once more with smaller micro-batches, and all
// later mini-batches use the smaller size.
func (st *stepper) minibatch(ctx context.Context, opts policy.StepOptions, shares ...share) (policy.StepStats, error) {
	st.cut(shares)
	done := st.done
	stats, err := st.attempt(ctx, opts, shares)
	if st.makeSmaller(err, shares...) {
		st.done = done
		st.cut(shares)
		for _, s := range shares {
			s.forget()
		}
		stats, err = st.attempt(ctx, opts, shares)
	}
	return stats, st.explained(err)
}

// attempt tries to take the step once.
func (st *stepper) attempt(ctx context.Context, opts policy.StepOptions, shares []share) (policy.StepStats, error) {
	stats, err := st.accumulate(ctx, opts, shares)
	if err == nil {
		return stats, nil
	}
	// The caller's context may have caused the failure, but the gradients must still be discarded.
	if discardErr := st.trainer.Discard(context.WithoutCancel(ctx), st.role); discardErr != nil {
		return stats, fmt.Errorf("%w (and discard gradients: %w)", err, discardErr)
	}
	return stats, err
}

func (st *stepper) accumulate(ctx context.Context, opts policy.StepOptions, shares []share) (policy.StepStats, error) {
	for _, s := range shares {
		for _, rows := range s.micros {
			if err := st.microbatch(ctx, rows, s); err != nil {
				return policy.StepStats{}, err
			}
			st.done++
			if st.progress != nil {
				st.progress(st.done, st.total)
			}
		}
	}
	stats, err := st.trainer.Step(ctx, st.role, opts)
	if err != nil {
		return stats, fmt.Errorf("take optimiser step: %w", err)
	}
	return stats, nil
}

func (st *stepper) microbatch(ctx context.Context, rows []int, s share) error {
	req := s.request(st, rows)
	out, err := st.trainer.Forward(ctx, req)
	if err != nil {
		return fmt.Errorf("forward %d sequences: %w", len(rows), err)
	}
	if err := checkOutputs(out, req.Sequences, st.outputs); err != nil {
		return err
	}
	cotangents, err := s.eval(rows, out)
	if err != nil {
		return err
	}
	if err := st.trainer.Backward(ctx, st.role, out.Kept, cotangents); err != nil {
		return fmt.Errorf("backward %d sequences: %w", len(rows), err)
	}
	return nil
}

// checkOutputs returns an error if outputs do not have the sequences' shape.
func checkOutputs(out policy.TokenOutputs, sequences [][]int32, want policy.Outputs) error {
	for _, x := range []struct {
		output policy.Outputs
		name   string
		values [][]float32
	}{
		{policy.OutLogProb, "log-probabilities", out.LogProbs}, {policy.OutEntropy, "entropies", out.Entropies},
		{policy.OutValue, "values", out.Values},
	} {
		if !want.Has(x.output) {
			continue
		}
		if err := checkShape(x.name, x.values, sequences); err != nil {
			return err
		}
	}
	return nil
}

func checkShape(name string, values [][]float32, sequences [][]int32) error {
	if len(values) != len(sequences) {
		return fmt.Errorf("forward gave %s of %d rows for %d sequences", name, len(values), len(sequences))
	}
	for i := range values {
		if len(values[i]) != len(sequences[i]) {
			return fmt.Errorf("forward gave %d %s for the %d tokens of sequence %d", len(values[i]), name,
				len(sequences[i]), i)
		}
	}
	return nil
}

// pack splits rows into micro-batches of at most limit tokens. A longer row is a micro-batch of its own. Rows of
// similar length share a micro-batch; only their lengths and indices decide the order.
func pack(rows []int, length func(int) int, limit int) [][]int {
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, func(a, b int) int { return cmp.Or(length(a)-length(b), a-b) })
	return fill(sorted, length, limit)
}

// fill splits rows, in their order, into micro-batches of at most limit tokens.
func fill(sorted []int, length func(int) int, limit int) [][]int {
	var out [][]int
	used := 0
	for _, i := range sorted {
		if n := length(i); len(out) == 0 || used+n > limit {
			out, used = append(out, []int{i}), n
		} else {
			out[len(out)-1] = append(out[len(out)-1], i)
			used += n
		}
	}
	return out
}

// checkTokens returns an error for a sequence with a mask that cannot be learned from.
func checkTokens(tokens, mask []int32) error {
	if len(tokens) != len(mask) {
		return fmt.Errorf("%d token ids for %d mask entries: %w", len(tokens), len(mask), loss.ErrBadRow)
	}
	if len(mask) > 0 && mask[0] != 0 {
		return fmt.Errorf("the first token is under the loss mask, though nothing predicts it: %w", loss.ErrBadRow)
	}
	return nil
}

// live reports whether a mask covers any token.
func live(mask []int32) bool { return slices.ContainsFunc(mask, func(m int32) bool { return m != 0 }) }
