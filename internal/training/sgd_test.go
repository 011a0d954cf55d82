package training_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/internal/training"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// TestAddAnOptimizer is the optimiser of CONTRIBUTING.md: a recipe names it, both engines take the same steps, which
// are those by hand, and their checkpoints go on.
func TestAddAnOptimizer(t *testing.T) {
	options := sgdOptions(t)
	require.Equal(t, policy.StepOptions{LR: 0.1, Rule: optimizer.SGD{Momentum: 0.5, WeightDecay: 0.2}}, options)
	shape := checkpoint.Shape{Vocab: 32, Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 24,
		Positions: 16, RopeTheta: 10000, NormEps: 1e-6, Pad: -1}
	dir := filepath.Join(t.TempDir(), "start")
	require.NoError(t, checkpoint.Init(dir, shape, 1, nil))
	e, err := cpu.Open(cpu.Options{Threads: 1})
	require.NoError(t, err)
	ours := stepTwice(t, e, dir, options)
	theirs, err := torch.Open(t.Context(), torch.Options{
		Python:  pythontest.Need(t, "TORCH", "torch", "transformers", "safetensors"),
		Threads: 1, Dir: t.TempDir()})
	require.NoError(t, err)
	for i, w := range stepTwice(t, theirs, dir, options) {
		require.InDeltaSlice(t, ours[i].Data, w.Data, 1e-5, w.Name)
	}
}

// sgdOptions returns the options of an update by a recipe with SGD. A field of another optimiser is refused by name.
func sgdOptions(t *testing.T) policy.StepOptions {
	t.Helper()
	resolve := func(section string) (*recipes.Resolved, error) {
		return recipes.Resolve("quickstart", "", []string{"optimizer=" + section}, nil, nil)
	}
	r, err := resolve("{name: sgd, lr: 0.1, momentum: 0.5, weight_decay: 0.2, clip_norm: 0}")
	require.NoError(t, err)
	require.Equal(t, 1, r.Recipe.Optimizer.States())
	config, err := training.Update(&r.Recipe, 1, 0)
	require.NoError(t, err)
	for section, want := range map[string]string{
		"{name: sgd, lr: 0.1, beta1: 0.9}":  "beta1: cannot be combined with optimizer sgd; it belongs to adamw",
		"{name: sgd, lr: 0.1, momentum: 1}": "momentum",
		"{lr: 0.1, momentum: 0.5}":          "momentum: cannot be combined with optimizer adamw; it belongs to sgd",
		"{name: lion, lr: 0.1}":             "must be one of adamw, sgd",
	} {
		_, err := resolve(section)
		require.ErrorContains(t, err, want)
	}
	return config.Optimizer
}

// stepTwice takes two steps on an engine and checks both. The second is taken again from the checkpoint of the first,
// with the same result. It returns the weights.
func stepTwice(t *testing.T, e policy.Engine, dir string, options policy.StepOptions) []checkpoint.Tensor {
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	start, err := checkpoint.Read(dir, false)
	require.NoError(t, err)
	first, at := step(t, e, dir, true, options)
	gradient, _ := step(t, e, at, false, options) // its momentum is the second gradient
	second, _ := step(t, e, at, true, options)
	again, _ := step(t, e, at, true, options)
	require.Equal(t, second.Weights, again.Weights)
	require.Equal(t, second.Optimizer, again.Optimizer)
	require.Equal(t, []string{"momentum_buffer"}, second.Optimizer.Names)
	require.EqualValues(t, 2, second.Optimizer.Step)

	v1, v2, g2 := first.Optimizer.States[0], second.Optimizer.States[0], gradient.Optimizer.States[0]
	moved := 0.0
	for i, w := range second.Weights {
		decay := 0.0
		if len(w.Dims) > 1 { // norms do not decay
			decay = 0.2
		}
		for j := range w.Data {
			byHand(t, w.Name, v2[i].Data[j], 0.5*float64(v1[i].Data[j])+float64(g2[i].Data[j]))
			byHand(t, w.Name, first.Weights[i].Data[j],
				float64(start.Weights[i].Data[j])*(1-0.1*decay)-0.1*float64(v1[i].Data[j]))
			byHand(t, w.Name, w.Data[j],
				float64(first.Weights[i].Data[j])*(1-0.1*decay)-0.1*float64(v2[i].Data[j]))
			moved = max(moved, math.Abs(float64(v2[i].Data[j])))
		}
	}
	require.Greater(t, moved, 1e-3)
	_, err = e.Step(t.Context(), policy.RolePolicy, policy.StepOptions{LR: 0.1, Rule: optimizer.AdamW{Epsilon: 1e-8}})
	require.ErrorIs(t, err, policy.ErrBadRequest, "the model has the states of another optimiser")
	return second.Weights
}

// step loads a model, takes a step and saves the result.
func step(t *testing.T, e policy.Engine, dir string, state bool, o policy.StepOptions) (
	c *checkpoint.Checkpoint, to string) {
	t.Helper()
	ctx := t.Context()
	to = filepath.Join(t.TempDir(), "saved")
	require.NoError(t, e.Load(ctx, policy.RolePolicy, dir, state))
	out, err := e.Forward(ctx, policy.ForwardRequest{Role: policy.RolePolicy, Temperature: 1,
		Sequences: [][]int32{{1, 2, 3, 4, 5}, {6, 7, 8}}, Outputs: policy.OutLogProb, Keep: true})
	require.NoError(t, err)
	require.NoError(t, e.Backward(ctx, policy.RolePolicy, out.Kept,
		policy.Cotangents{LogProbs: [][]float32{{0, 1, -2, 3, 1}, {0, -1, 2}}}))
	_, err = e.Step(ctx, policy.RolePolicy, o)
	require.NoError(t, err)
	_, err = e.Save(ctx, policy.RolePolicy, to)
	require.NoError(t, err)
	c, err = checkpoint.Read(to, true)
	require.NoError(t, err)
	return c, to
}

func byHand(t *testing.T, name string, got float32, want float64) {
	t.Helper()
	require.InDelta(t, want, got, 1e-5*(1+math.Abs(want)), name)
}
