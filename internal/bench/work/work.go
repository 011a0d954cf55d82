// Package work holds the work that engines are measured with: random models and rows, and micro-batches with what they
// cost.
package work

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/gguf"
)

// LoadRandom makes a policy with random weights resident in an engine.
func LoadRandom(ctx context.Context, e policy.Engine, s checkpoint.Shape) error {
	tmp, err := os.MkdirTemp("", "ropewalk-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "model")
	if err := checkpoint.Init(dir, s, 1, nil); err != nil {
		return err
	}
	return e.Load(ctx, policy.RolePolicy, dir, false)
}

// RandomRows are sequences of tokens drawn evenly from a vocabulary, the same ones for the same seed and stream.
func RandomRows(seed, stream uint64, vocab, rows, length int) [][]int32 {
	r := rand.New(rand.NewPCG(seed, stream))
	out := make([][]int32, rows)
	for i := range out {
		for range length {
			out[i] = append(out[i], int32(r.IntN(vocab)))
		}
	}
	return out
}

// LanguageModelling are the cotangents of the mean negative log-probability over an optimiser step of n tokens, of
// which rows are a part.
func LanguageModelling(rows [][]int32, n int) policy.Cotangents {
	c := policy.Cotangents{LogProbs: make([][]float32, len(rows))}
	for i, r := range rows {
		c.LogProbs[i] = slices.Repeat([]float32{-1 / float32(n)}, len(r))
	}
	return c
}

// MicroBatch is a forward pass and its backward pass.
type MicroBatch struct {
	Rows [][]int32
	// Cotangents also say which outputs the forward pass computes.
	Cotangents policy.Cotangents
}

// Run goes forward and backward on the resident policy.
func (m MicroBatch) Run(ctx context.Context, e policy.Engine) error {
	var outputs policy.Outputs
	if m.Cotangents.LogProbs != nil {
		outputs |= policy.OutLogProb
	}
	if m.Cotangents.Entropies != nil {
		outputs |= policy.OutEntropy
	}
	out, err := e.Forward(ctx, policy.ForwardRequest{
		Role: policy.RolePolicy, Sequences: m.Rows, Temperature: 1, Outputs: outputs, Keep: true,
	})
	if err != nil {
		return err
	}
	return e.Backward(ctx, policy.RolePolicy, out.Kept, m.Cotangents)
}

// Cost is what a micro-batch takes on the PyTorch engine.
type Cost struct {
	Seconds float64 // of both calls, measured here
	Used    torch.Usage
}

// Tax is the share of the time that was not spent in the models' own work: encoding, the socket, copies, the engine's
// own Python, and waiting.
func (c Cost) Tax() float64 { return 1 - c.Used.TorchSeconds/c.Seconds }

// Measure runs the micro-batch and returns its cost. It drops the gradients, so that they do not grow over repetitions.
func (m MicroBatch) Measure(ctx context.Context, e *torch.Engine) (Cost, error) {
	before, began := e.Usage(), time.Now()
	if err := m.Run(ctx, e); err != nil {
		return Cost{}, err
	}
	c := Cost{Seconds: time.Since(began).Seconds(), Used: e.Usage().Since(before)}
	return c, e.Discard(ctx, policy.RolePolicy)
}

// WriteGGUF writes a model in float32 to a file. Its vocabulary has names alone, because only ids are exchanged.
func WriteGGUF(file, name string, c *checkpoint.Checkpoint) error {
	out := gguf.Model{Name: name, Checkpoint: c, Dtype: checkpoint.F32}
	out.Vocabulary.Split, out.Vocabulary.Start = "default", -1
	for id := range c.Shape.Vocab {
		out.Vocabulary.Tokens = append(out.Vocabulary.Tokens, fmt.Sprintf("t%d", id))
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(gguf.Write(f, out), f.Close())
}
