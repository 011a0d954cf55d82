// Package policy holds the model behind the Engine contract: what an engine must
// do, the errors it returns, and (in cpu/) the engine that does it on a CPU.
//
// Glossary. A *role* names one of the models that an engine may hold at once. A
// *prefix* is the token ids before a response. A *stream* is the seed of all
// randomness of one row. A *cotangent* is d(loss)/d(output) of one token; the
// engine never sees the loss itself, so every algorithm in rl/ runs on every engine.
package policy

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// Role names one of the models an engine holds.
type Role string

// The roles of the published algorithms. The critic is a model with a value head in the place of the output
// head: it gives values and neither generates nor gives log-probabilities. Its output head, where that is a
// matrix of its own, stays in its checkpoints as it was loaded and does not train.
const (
	RolePolicy    Role = "policy"
	RoleReference Role = "reference"
	RoleCritic    Role = "critic"
)

// Outputs is a set of per-token outputs.
type Outputs uint8

// The outputs a forward pass can give: log-probabilities and entropies of the policy and the reference, values of
// the critic. Asking a role for what is not its own is ErrBadRequest.
const (
	OutLogProb Outputs = 1 << iota
	OutEntropy
	// OutValue is V of the state *before* a token: entry t is read at the hidden state of position t−1, which has
	// seen tokens 0…t−1, just as the log-probability of token t is. The value after the last token of a sequence
	// (to bootstrap from where an episode was cut off) is the last entry of the sequence with any token appended.
	OutValue
)

// Has reports whether o contains x.
func (o Outputs) Has(x Outputs) bool { return o&x == x }

// Finish says why a generated row ended.
type Finish string

// Reasons a row ends: it emitted a stop token, or its budget was used up.
const (
	FinishStop   Finish = "stop"
	FinishLength Finish = "length"
)

// GenerateRequest asks for one response per prefix.
type GenerateRequest struct {
	Role     Role
	Prefixes [][]int32 // [rows][prefix length ≥ 1]
	// Streams seeds each row: all of a row's draws come from it, whatever the batch holds.
	Streams []uint64 // [rows]
	// MaxTokens is the budget of new tokens of each row, ≥ 1.
	MaxTokens []int // [rows]
	// Temperature divides the logits; 0 takes the most likely token (log-probabilities and
	// entropies are then those of temperature 1).
	Temperature float64
	// Stop holds the ids that end a row; the stop token is part of the response.
	Stop []int32
}

// Generated holds one response per row of the request.
type Generated struct {
	Tokens    [][]int32   // [rows][n], the stop token included
	LogProbs  [][]float32 // [rows][n], natural log under the tempered distribution
	Entropies [][]float32 // [rows][n], nats, full vocabulary
	Finish    []Finish    // [rows]
}

// ForwardRequest asks for per-token outputs of whole sequences.
type ForwardRequest struct {
	Role        Role
	Sequences   [][]int32 // [rows][n ≥ 1]
	Temperature float64   // > 0; values do not depend on it
	Outputs     Outputs
	// Keep keeps the activations for one later Backward or Discard.
	Keep bool
}

// Kept names the activations of one forward pass.
type Kept uint64

// TokenOutputs are per-token outputs, aligned with the sequences: entry t of a row belongs
// to token t given the tokens before it, so entry 0 is 0 (nothing predicts the first token).
type TokenOutputs struct {
	Kept      Kept        // set when the request said Keep
	LogProbs  [][]float32 // nil unless asked for
	Entropies [][]float32 // nil unless asked for
	Values    [][]float32 // nil unless asked for
}

// Cotangents are d(loss)/d(output) for each kept output, shaped like TokenOutputs.
// A nil field means zero. Entry 0 of each row is ignored.
type Cotangents struct {
	LogProbs  [][]float32
	Entropies [][]float32
	Values    [][]float32
}

// StepOptions are AdamW's (Loshchilov & Hutter 2019).
type StepOptions struct {
	LR          float64
	Beta1       float64
	Beta2       float64
	Epsilon     float64
	WeightDecay float64
	// ClipNorm bounds the global L2 norm of the gradient; 0 does not clip.
	ClipNorm float64
}

// Validate reports the first option that no step can take; the error is ErrBadRequest.
func (o StepOptions) Validate() error {
	for _, f := range []struct {
		name     string
		v, below float64
	}{
		{"learning rate", o.LR, math.Inf(1)}, {"beta1", o.Beta1, 1}, {"beta2", o.Beta2, 1}, {"epsilon", o.Epsilon, math.Inf(1)},
		{"weight decay", o.WeightDecay, math.Inf(1)}, {"clip norm", o.ClipNorm, math.Inf(1)},
	} {
		if !(f.v >= 0 && f.v < f.below) {
			return fmt.Errorf("%w: %s is %v", ErrBadRequest, f.name, f.v)
		}
	}
	return nil
}

// StepStats reports one optimiser step.
type StepStats struct {
	GradNorm float64 // before clipping
	Clipped  bool
	Step     int64 // optimiser steps taken so far, this one included
}

// State says what is resident under a role.
type State struct {
	Digest string // CheckpointDigest of what was loaded or last saved; "" after a Step, of a fresh critic or when empty
	Step   int64  // optimiser steps taken
	Params int64
}

// Engine runs a language model. Calls obey their context and return typed errors
// (below). One engine serves one caller at a time per role: calls on the same engine are
// serialised by the engine itself. No call is retried inside; every call but Backward and
// Step may be repeated with the same result. Whoever opened the engine closes it.
type Engine interface {
	// Load makes the checkpoint folder dir resident under role, with its optimiser state
	// where the folder has one and optimizer is set; gradients and kept activations are dropped.
	// A policy's folder becomes a critic with a value head of zeros, without the policy's
	// optimiser state and, being no checkpoint until it is saved, with the empty Digest. A
	// critic's folder under another role is ErrBadRequest. A Load that fails changes nothing.
	Load(ctx context.Context, role Role, dir string, optimizer bool) error
	// Save writes what is resident under role to the empty folder dir and returns its CheckpointDigest.
	Save(ctx context.Context, role Role, dir string) (string, error)
	Generate(ctx context.Context, req GenerateRequest) (Generated, error)
	Forward(ctx context.Context, req ForwardRequest) (TokenOutputs, error)
	// Backward adds the gradients of one kept forward pass and drops what was kept.
	Backward(ctx context.Context, role Role, kept Kept, c Cotangents) error
	// Discard drops everything kept and all accumulated gradients of role.
	Discard(ctx context.Context, role Role) error
	// Step clips, applies AdamW, zeroes the gradients. A NaN or Inf in a gradient refuses the step.
	Step(ctx context.Context, role Role, opts StepOptions) (StepStats, error)
	State(ctx context.Context, role Role) (State, error)
	// Describe names the device and its numerical library for the record: e.g. cpu, 2 threads, openblas 0.3.21.
	Describe() Description
	Close() error
}

// Usage is what an engine has used of its device since it was opened; it only grows, but for what says otherwise.
type Usage struct {
	Trained      int64   // tokens that went forward and backward
	TrainSeconds float64 // of forward passes that were kept, backward passes and steps
	// Flops are the floating-point operations of the models' own matrix products in training, and Peak how many a second
	// the devices can do at most, in the numbers that the models compute in; 0 where that is not known.
	Flops, PeakFlops float64
	// PeakBytes is the most memory that one device has held; 0 where there is none of its own.
	PeakBytes int64
	// Busy is the share of the time since it was last asked for in which the devices worked; nil where nothing tells.
	Busy *float64
}

// Meter is an engine that measures what it uses. Others have nothing to tell.
type Meter interface{ Usage() Usage }

// Description is what determines an engine's rounding besides its inputs.
type Description struct {
	Device  string `json:"device"`
	BLAS    string `json:"blas"`
	Threads int    `json:"threads"`
	// Advice says how to get a faster one, or is empty.
	Advice string `json:"advice,omitempty"`
}

// Sentinels of engine errors; test with errors.Is.
var (
	ErrOutOfMemory  = errors.New("engine out of memory")
	ErrLost         = errors.New("engine lost")
	ErrNotLoaded    = errors.New("no model is loaded under this role")
	ErrNotKept      = errors.New("no such kept forward pass")
	ErrWrongVersion = errors.New("resident model is of another version")
	ErrBadRequest   = errors.New("bad engine request")
)

// DeviceError says that a device failed under its engine. Another one may do the same work.
type DeviceError struct {
	Kind string // of failure, e.g. gpu_xid_79
	Err  error
}

func (e *DeviceError) Error() string { return fmt.Sprintf("%s: %v", e.Kind, e.Err) }
func (e *DeviceError) Unwrap() error { return e.Err }

// NonFiniteError says which parameter's gradient (or which output) was NaN or infinite.
type NonFiniteError struct{ Name string }

func (e *NonFiniteError) Error() string { return fmt.Sprintf("non-finite value in %s", e.Name) }
