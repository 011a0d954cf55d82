package learner

import (
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// Progress hears how many of an update's or a cloning's micro-batches are done.
type Progress func(done, total int)

// lane drives one of an engine's models through forward, backward and step.
type lane struct {
	engine      policy.Engine
	role        policy.Role
	temperature float64
	outputs     policy.Outputs
	progress    Progress
	done, total int
	limit       int      // tokens of a micro-batch
	smaller     *Smaller // nil until the memory was full
}

// evaluate turns the outputs of the sequences named by rows into cotangents.
type evaluate func(rows []int, out policy.TokenOutputs) (policy.Cotangents, error)

// share is the part of an optimiser step's mini-batch that is on rows of one source.
type share struct {
	micros   [][]int
	sequence func(int) []int32
	eval     evaluate
	forget   func() // what eval has added up, before the micro-batches are taken again
}

// minibatch accumulates the gradients of each share's micro-batches and takes one step. Whatever fails,
// no half-accumulated gradient stays behind. Where the engine's memory is full, the mini-batch is taken again in
// smaller micro-batches, which the shares then have, and so are all that follow; that happens once.
func (l *lane) minibatch(ctx context.Context, opts policy.StepOptions, shares ...share) (policy.StepStats, error) {
	l.cut(shares)
	done := l.done
	stats, err := l.attempt(ctx, opts, shares)
	if l.makeSmaller(err, shares...) {
		l.done = done
		l.cut(shares)
		for _, s := range shares {
			s.forget()
		}
		stats, err = l.attempt(ctx, opts, shares)
	}
	return stats, l.explained(err)
}

// attempt takes the step once.
func (l *lane) attempt(ctx context.Context, opts policy.StepOptions, shares []share) (policy.StepStats, error) {
	stats, err := l.accumulate(ctx, opts, shares)
	if err == nil {
		return stats, nil
	}
	// The caller's context may be what failed; discarding must still happen.
	if discardErr := l.engine.Discard(context.WithoutCancel(ctx), l.role); discardErr != nil {
		return stats, fmt.Errorf("%w (and discard gradients: %w)", err, discardErr)
	}
	return stats, err
}

func (l *lane) accumulate(ctx context.Context, opts policy.StepOptions, shares []share) (policy.StepStats, error) {
	for _, s := range shares {
		for _, rows := range s.micros {
			if err := l.microbatch(ctx, rows, s.sequence, s.eval); err != nil {
				return policy.StepStats{}, err
			}
			l.done++
			if l.progress != nil {
				l.progress(l.done, l.total)
			}
		}
	}
	stats, err := l.engine.Step(ctx, l.role, opts)
	if err != nil {
		return stats, fmt.Errorf("take optimiser step: %w", err)
	}
	return stats, nil
}

func (l *lane) microbatch(ctx context.Context, rows []int, sequence func(int) []int32, eval evaluate) error {
	sequences := make([][]int32, len(rows))
	for k, i := range rows {
		sequences[k] = sequence(i)
	}
	out, err := l.engine.Forward(ctx, policy.ForwardRequest{
		Role: l.role, Sequences: sequences, Temperature: l.temperature, Outputs: l.outputs, Keep: true,
	})
	if err != nil {
		return fmt.Errorf("forward %d sequences: %w", len(rows), err)
	}
	if err := checkOutputs(out, sequences, l.outputs); err != nil {
		return err
	}
	cotangents, err := eval(rows, out)
	if err != nil {
		return err
	}
	if err := l.engine.Backward(ctx, l.role, out.Kept, cotangents); err != nil {
		return fmt.Errorf("backward %d sequences: %w", len(rows), err)
	}
	return nil
}

// checkOutputs reports outputs that do not have the sequences' shape.
func checkOutputs(out policy.TokenOutputs, sequences [][]int32, want policy.Outputs) error {
	for _, x := range []struct {
		output policy.Outputs
		name   string
		values [][]float32
	}{{policy.OutLogProb, "log-probabilities", out.LogProbs}, {policy.OutEntropy, "entropies", out.Entropies}, {policy.OutValue, "values", out.Values}} {
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
			return fmt.Errorf("forward gave %d %s for the %d tokens of sequence %d", len(values[i]), name, len(sequences[i]), i)
		}
	}
	return nil
}

// pack cuts rows into micro-batches of at most limit tokens; a longer row is one by itself. Rows
// of like length come together, in an order that their lengths and indexes alone decide.
func pack(rows []int, length func(int) int, limit int) [][]int {
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, func(a, b int) int {
		if d := length(a) - length(b); d != 0 {
			return d
		}
		return a - b
	})
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

// checkTokens reports a sequence whose mask cannot be learned from.
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
