package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// The bounds in float32.
const (
	logProbBound  = 1e-4
	gradientBound = 1e-4
)

var paritySize = size{shape: checkpoint.Shape{
	Vocab: 1003, Hidden: 128, Layers: 3, Heads: 8, KVHeads: 2, HeadDim: 32, FFN: 320, Positions: 256, RopeTheta: 10000,
	NormEps: 1e-6, Pad: -1,
}}

// parity compares the engine in float32 with the CPU engine: outputs and gradients of one model.
func parity(ctx context.Context, l *lab, r *bench.Report) error {
	dir := filepath.Join(l.dir, "parity")
	defer os.RemoveAll(dir)
	from := filepath.Join(dir, "model")
	if err := checkpoint.Init(from, paritySize.shape, 5, nil); err != nil {
		return err
	}
	theirs, err := l.withEngine(ctx, settings{dtype: torch.Float32, checkpointing: "on"})
	if err != nil {
		return err
	}
	ours, err := cpu.Open(cpu.Options{})
	if err != nil {
		return err
	}
	defer ours.Close()
	want, err := passOf(ctx, ours, from, filepath.Join(dir, "cpu"))
	if err != nil {
		return fmt.Errorf("CPU engine: %w", err)
	}
	got, err := passOf(ctx, theirs, from, filepath.Join(dir, "torch"))
	if err != nil {
		return err
	}
	none := make([][]int32, len(want.LogProbs))
	_, logProb := apart(none, got.LogProbs, want.LogProbs)
	_, entropy := apart(none, got.Entropies, want.Entropies)
	gradient, of, err := furthest(want.gradients, got.gradients)
	if err != nil {
		return err
	}
	r.Add("greatest difference", bench.Of("log-probability", logProb).AtMost(logProbBound),
		bench.Of("entropy", entropy).AtMost(logProbBound),
		bench.Of("gradient of "+of+", relative L2", gradient).AtMost(gradientBound))
	return r.Missed()
}

// pass is a forward and backward pass.
type pass struct {
	policy.TokenOutputs
	gradients map[string][]float32
}

// passOf runs a pass on an engine. A step with learning rate 0 and betas 0 leaves the gradients as the optimiser's
// first moments, which are saved to an empty folder.
func passOf(ctx context.Context, e policy.Engine, from, to string) (pass, error) {
	if err := e.Load(ctx, policy.RolePolicy, from, false); err != nil {
		return pass{}, err
	}
	var rows [][]int32
	for i, n := range []int{200, 91, 90, 33, 7, 2, 1} {
		rows = append(rows, paritySize.randomRows(uint64(i), 1, n)...)
	}
	out, err := e.Forward(ctx, policy.ForwardRequest{
		Role: policy.RolePolicy, Sequences: rows, Temperature: 0.8, Outputs: policy.OutLogProb | policy.OutEntropy,
		Keep: true,
	})
	if err != nil {
		return pass{}, err
	}
	c := policy.Cotangents{LogProbs: waves(rows, 1), Entropies: waves(rows, 2)}
	if err := e.Backward(ctx, policy.RolePolicy, out.Kept, c); err != nil {
		return pass{}, err
	}
	if _, err := e.Step(ctx, policy.RolePolicy, policy.StepOptions{Rule: optimizer.AdamW{Epsilon: 1}}); err != nil {
		return pass{}, err
	}
	if _, err := e.Save(ctx, policy.RolePolicy, to); err != nil {
		return pass{}, err
	}
	gradients, err := firstMoments(to)
	return pass{out, gradients}, err
}

// waves are cotangents that differ from token to token.
func waves(rows [][]int32, pitch float64) [][]float32 {
	out := make([][]float32, len(rows))
	for i, r := range rows {
		for t := range r {
			out[i] = append(out[i], float32(math.Sin(pitch*float64(1+i+3*t))))
		}
	}
	return out
}

func firstMoments(dir string) (map[string][]float32, error) {
	c, err := checkpoint.Read(dir, true)
	if err != nil {
		return nil, err
	}
	out := map[string][]float32{}
	for i, w := range c.Weights {
		out[w.Name] = c.Optimizer.States[slices.Index(c.Optimizer.Names, "exp_avg")][i].Data
	}
	return out, nil
}

// furthest is the greatest relative L2 error of a tensor, and its name.
func furthest(want, got map[string][]float32) (worst float64, of string, err error) {
	if len(want) == 0 || len(want) != len(got) {
		return 0, "", fmt.Errorf("gradients of %d parameters for %d", len(got), len(want))
	}
	for name, w := range want {
		if len(got[name]) != len(w) {
			return 0, "", fmt.Errorf("%s: a gradient of %d numbers for %d", name, len(got[name]), len(w))
		}
		var diff, norm float64
		for i := range w {
			d := float64(got[name][i]) - float64(w[i])
			diff, norm = diff+d*d, norm+float64(w[i])*float64(w[i])
		}
		if e := math.Sqrt(diff / norm); !(e <= worst) {
			worst, of = e, name
		}
		if math.IsNaN(worst) {
			return worst, of, nil
		}
	}
	return worst, of, nil
}
