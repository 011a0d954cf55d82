package policy

import (
	"context"
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// Trainer computes what models say about given tokens, and trains them. Calls obey their context and return typed
// errors (see ErrLost and its neighbours). A trainer serialises its calls, so one role serves one caller at a time. It
// never retries a call. Every call except Backward and Step may be repeated with the same result. Equal calls on equal
// models give equal bits. The caller that opened the trainer closes it. Load, State, Describe and Close are those of
// Sampler.
type Trainer interface {
	// Load loads the checkpoint folder dir under role, with its optimiser state if optimizer is set and the folder has
	// one. It drops gradients and kept activations. A policy's folder becomes a critic with a value head of zeros and
	// without the policy's optimiser state. Such a critic is not a checkpoint until it is saved, so its Digest is
	// empty. A critic's folder under another role is ErrBadRequest. A Load that fails changes nothing.
	Load(ctx context.Context, role Role, dir string, optimizer bool) error
	// Save writes the model of role to the empty folder dir and returns its CheckpointDigest.
	Save(ctx context.Context, role Role, dir string) (string, error)
	// Forward computes per-token outputs of whole sequences. Its entropies are those of the full vocabulary.
	Forward(ctx context.Context, req ForwardRequest) (TokenOutputs, error)
	// Backward adds the gradients of one kept forward pass and drops its activations.
	Backward(ctx context.Context, role Role, kept Kept, c Cotangents) error
	// Discard drops all kept activations and all accumulated gradients of role.
	Discard(ctx context.Context, role Role) error
	// Step clips the gradient, takes a step of the optimiser and zeroes the gradient. If the gradient holds a NaN or
	// Inf, Step returns an error and changes no weights. A model that another optimiser has trained is ErrBadRequest.
	Step(ctx context.Context, role Role, opts StepOptions) (StepStats, error)
	// State describes the model that is loaded under role.
	State(ctx context.Context, role Role) (State, error)
	// Describe names the device and its numerical library for the record, for example cpu, 2 threads, openblas 0.3.21.
	Describe() Description
	// Close releases the trainer's models and devices. Later calls return ErrLost.
	Close() error
}

// Outputs is a set of per-token outputs.
type Outputs uint8

// The outputs of a forward pass: log-probs and entropies of the policy and the reference, values of the critic. A
// request for an output that the role does not have is ErrBadRequest.
const (
	OutLogProb Outputs = 1 << iota
	OutEntropy
	// OutValue is V of the state *before* a token. Entry t is read at the hidden state of position t−1, which has seen
	// tokens 0…t−1, like the log-prob of token t. To get the value after the last token of a sequence (to bootstrap an
	// episode that was cut off), append any token and read the last entry.
	OutValue
)

// Has reports whether o contains x.
func (o Outputs) Has(x Outputs) bool { return o&x == x }

// Lacking is a trainer that cannot compute every output of policies and references. Callers ask it for the others.
type Lacking interface {
	// Lacks returns the outputs that the trainer cannot compute. The answer does not change while it is open.
	Lacks() Outputs
}

// LackedBy returns the outputs that a trainer cannot compute.
func LackedBy(t Trainer) Outputs {
	if l, ok := t.(Lacking); ok {
		return l.Lacks()
	}
	return 0
}

// ForwardRequest asks for per-token outputs of whole sequences.
type ForwardRequest struct {
	Role        Role
	Sequences   [][]int32 // [rows][n ≥ 1]
	Temperature float64   // > 0; values do not depend on it
	Outputs     Outputs
	// Shared, unless it is nil, has the number of leading tokens of each row whose outputs the caller does not need,
	// less than the row's tokens. Rows that begin with the same such tokens may share their computation, which changes
	// rounding alone. Outputs of these tokens may be 0, and Backward ignores their cotangents.
	Shared []int
	// Keep keeps the activations for one later Backward or Discard.
	Keep bool
}

// CheckShared reports the first row whose shared tokens are not some of its first ones. The error is ErrBadRequest.
func (r ForwardRequest) CheckShared() error {
	if r.Shared != nil && len(r.Shared) != len(r.Sequences) {
		return fmt.Errorf("%w: shared tokens of %d rows for %d sequences", ErrBadRequest, len(r.Shared),
			len(r.Sequences))
	}
	for i, n := range r.Shared {
		if n < 0 || n >= len(r.Sequences[i]) {
			return fmt.Errorf("%w: sequence %d shares %d of its %d tokens", ErrBadRequest, i, n, len(r.Sequences[i]))
		}
	}
	return nil
}

// Kept names the activations of one forward pass.
type Kept uint64

// TokenOutputs are per-token outputs, aligned with the sequences. Entry t of a row belongs to token t given the tokens
// before it. Entry 0 is 0, because nothing predicts the first token.
type TokenOutputs struct {
	Kept      Kept        // set if the request set Keep
	LogProbs  [][]float32 // nil unless requested
	Entropies [][]float32 // nil unless requested
	Values    [][]float32 // nil unless requested
}

// Cotangents are d(loss)/d(output) for each kept output, shaped like TokenOutputs.
// A nil field means zero. Entry 0 of each row is ignored.
type Cotangents struct {
	LogProbs  [][]float32
	Entropies [][]float32
	Values    [][]float32
}

// StepOptions say how a step changes the weights.
type StepOptions struct {
	LR   float64
	Rule optimizer.Rule // the optimiser and its settings
	// ClipNorm bounds the global L2 norm of the gradient; 0 does not clip.
	ClipNorm float64
}

// Validate reports the first option that is not valid for any step. The error is ErrBadRequest.
func (o StepOptions) Validate() error {
	usable := func(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }
	switch {
	case o.Rule == nil:
		return fmt.Errorf("%w: no optimizer", ErrBadRequest)
	case !usable(o.LR):
		return fmt.Errorf("%w: learning rate is %v", ErrBadRequest, o.LR)
	case !usable(o.ClipNorm):
		return fmt.Errorf("%w: clip norm is %v", ErrBadRequest, o.ClipNorm)
	}
	if err := o.Rule.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrBadRequest, err)
	}
	return nil
}

// StepStats reports one optimiser step.
type StepStats struct {
	GradNorm float64 // before clipping
	Clipped  bool
	Step     int64 // optimiser steps taken so far, including this one
}

// Score returns the log-probabilities at temperature 1 of all tokens but the first, by our own forward pass over the
// checkpoint in a folder.
type Score func(ctx context.Context, dir string, ids []int32) ([]float32, error)
