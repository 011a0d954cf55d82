package torch

import (
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// tensors are the arrays of one safetensors file by name.
type tensors map[string][]float32

func readTensors(t testing.TB, path string) tensors {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	f, err := checkpoint.DecodeSafetensors(b)
	require.NoError(t, err)
	out := tensors{}
	for _, x := range f.Tensors {
		out[x.Name] = x.Data
	}
	return out
}

// weights are all parameters of a role that train.
func weights(t testing.TB, e policy.Engine, role policy.Role) tensors {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "saved")
	_, err := e.Save(t.Context(), role, dir)
	require.NoError(t, err)
	trains := checkpoint.FileWeights
	if adapted, err := checkpoint.HasAdapter(dir); err != nil || adapted {
		require.NoError(t, err)
		trains = checkpoint.FileAdapter
	}
	out := readTensors(t, filepath.Join(dir, trains))
	if role == policy.RoleCritic {
		maps.Copy(out, readTensors(t, filepath.Join(dir, checkpoint.FileValueHead)))
	}
	return out
}

// gradients are those that an engine has accumulated: a step without a rate and without memory leaves them, and nothing
// else, as the optimiser's first moments.
func gradients(t testing.TB, e policy.Engine, role policy.Role) tensors {
	t.Helper()
	_, err := e.Step(t.Context(), role, policy.StepOptions{Rule: optimizer.AdamW{Epsilon: 1}})
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "saved")
	_, err = e.Save(t.Context(), role, dir)
	require.NoError(t, err)
	out := tensors{}
	for name, data := range readTensors(t, filepath.Join(dir, checkpoint.FileOptimizer)) {
		if of, ok := strings.CutPrefix(name, "exp_avg."); ok {
			out[of] = data
		}
	}
	return out
}

// distance is the greatest relative L2 error of a tensor, and which one it is of. A tensor of zeros must be zeros.
func distance(t testing.TB, want, got tensors) (worst float64, at string) {
	t.Helper()
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
	for name, w := range want {
		require.Len(t, got[name], len(w), name)
		var diff, norm float64
		for i := range w {
			d := float64(got[name][i]) - float64(w[i])
			diff, norm = diff+d*d, norm+float64(w[i])*float64(w[i])
		}
		if norm == 0 {
			require.Zero(t, diff, name)
			continue
		}
		if e := math.Sqrt(diff / norm); e > worst || math.IsNaN(e) {
			worst, at = e, name
		}
	}
	return worst, at
}

// change is what has become of parameters.
func change(before, after tensors) tensors {
	out := tensors{}
	for name, b := range before {
		for i := range b {
			out[name] = append(out[name], after[name][i]-b[i])
		}
	}
	return out
}

func randomRows(seed uint64, vocab int, lengths ...int) [][]int32 {
	r := rand.New(rand.NewPCG(seed, 2))
	out := make([][]int32, len(lengths))
	for i, n := range lengths {
		for range n {
			out[i] = append(out[i], int32(r.IntN(vocab)))
		}
	}
	return out
}

func randomLike(seed uint64, rows [][]int32) [][]float32 {
	r := rand.New(rand.NewPCG(seed, 3))
	out := make([][]float32, len(rows))
	for i, row := range rows {
		for range row {
			out[i] = append(out[i], float32(r.NormFloat64()))
		}
	}
	return out
}

// ask is a forward pass that is kept.
func forwardKept(t testing.TB, e policy.Engine, role policy.Role, rows [][]int32) policy.TokenOutputs {
	t.Helper()
	req := policy.ForwardRequest{
		Role: role, Sequences: rows, Temperature: 0.8, Outputs: policy.OutLogProb | policy.OutEntropy, Keep: true,
	}
	if role == policy.RoleCritic {
		req.Outputs = policy.OutValue
	}
	out, err := e.Forward(t.Context(), req)
	require.NoError(t, err)
	return out
}

// backward sends random cotangents back.
func backward(t testing.TB, e policy.Engine, role policy.Role, kept policy.Kept, rows [][]int32, seed uint64) {
	t.Helper()
	c := policy.Cotangents{LogProbs: randomLike(seed, rows), Entropies: randomLike(seed+1, rows)}
	if role == policy.RoleCritic {
		c = policy.Cotangents{Values: randomLike(seed, rows)}
	}
	require.NoError(t, e.Backward(t.Context(), role, kept, c))
}

// criticFolder is a critic whose head is not zero.
func criticFolder(t testing.TB, s checkpoint.Shape) string {
	t.Helper()
	s.ValueHead = true
	c, err := checkpoint.Fresh(s, 21)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(21, 1))
	for _, w := range c.Weights {
		if strings.HasPrefix(w.Name, "value_head.") {
			for i := range w.Data {
				w.Data[i] = float32(r.NormFloat64())
			}
		}
	}
	dir := filepath.Join(t.TempDir(), "critic")
	_, err = checkpoint.Write(dir, c)
	require.NoError(t, err)
	return dir
}

// bounds of the two engines' agreement in float32: outputs by their difference, gradients and what five steps of AdamW
// change by the relative L2 error of each tensor.
const (
	outputBound   = 1e-5
	gradientBound = 1e-4
	updateBound   = 1e-3
)

// requireParity takes two engines through outputs, one gradient over two micro-batches, and five steps.
func requireParity(t *testing.T, want, got policy.Engine, role policy.Role, dir string) {
	t.Helper()
	ctx := context.Background()
	both := []policy.Engine{want, got}
	first, second := randomRows(1, tiny.Vocab, 1, 30, 7, 64), randomRows(2, tiny.Vocab, 100, 3)
	var out [2]policy.TokenOutputs
	var before, grads, moved [2]tensors
	for i, e := range both {
		require.NoError(t, e.Load(ctx, role, dir, true))
		before[i] = weights(t, e, role)
		out[i] = forwardKept(t, e, role, first)
		backward(t, e, role, out[i].Kept, first, 5)
		backward(t, e, role, forwardKept(t, e, role, second).Kept, second, 6)
		grads[i] = gradients(t, e, role)
		require.NoError(t, e.Load(ctx, role, dir, true))
		for step := range uint64(5) {
			backward(t, e, role, forwardKept(t, e, role, first).Kept, first, 10*step)
			backward(t, e, role, forwardKept(t, e, role, second).Kept, second, 10*step+5)
			_, err := e.Step(
				ctx, role,
				policy.StepOptions{LR: 1e-3,
					Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.1}, ClipNorm: 1},
			)
			require.NoError(t, err)
		}
		moved[i] = change(before[i], weights(t, e, role))
	}
	require.Equal(t, before[0], before[1])
	worst := 0.0
	for i, rows := range [][][]float32{out[0].LogProbs, out[0].Entropies, out[0].Values} {
		for j := range rows {
			other := [][][]float32{out[1].LogProbs, out[1].Entropies, out[1].Values}[i]
			for k := range rows[j] {
				worst = max(worst, math.Abs(float64(rows[j][k])-float64(other[j][k])))
			}
		}
	}
	gradient, worstGradient := distance(t, grads[0], grads[1])
	update, worstUpdate := distance(t, moved[0], moved[1])
	t.Logf(
		"parity: %s: outputs %.1e, gradient %.1e (%s), update after 5 steps %.1e (%s)", role, worst, gradient,
		worstGradient, update, worstUpdate,
	)
	require.LessOrEqual(t, worst, outputBound)
	require.LessOrEqual(t, gradient, gradientBound, worstGradient)
	require.LessOrEqual(t, update, updateBound, worstUpdate)
}

// TestRealParityWithTheCPUEngine compares one rank with the engine in Go, and two ranks with one.
func TestRealParityWithTheCPUEngine(t *testing.T) {
	torch := fromPool(t, 1)
	defer torch.Close()
	for name, untied := range map[string]bool{"tied": false, "untied": true} {
		s := tiny
		s.Untied = untied
		for role, dir := range map[policy.Role]string{policy.RolePolicy: initialised(t, s, 9),
			policy.RoleCritic: criticFolder(t, s)} {
			t.Run(name+" "+string(role), func(t *testing.T) {
				ours, err := cpu.Open(cpu.Options{Threads: 2})
				require.NoError(t, err)
				defer ours.Close()
				requireParity(t, ours, torch, role, dir)
			})
		}
	}
}

func TestRealParityOfTwoRanksWithOne(t *testing.T) {
	pythontest.NeedLong(t)
	one, two := fromPool(t, 1), fromPool(t, 2)
	defer one.Close()
	defer two.Close()
	for role, dir := range map[policy.Role]string{policy.RolePolicy: initialised(t, tiny, 9),
		policy.RoleCritic: criticFolder(t, tiny)} {
		t.Run(string(role), func(t *testing.T) { requireParity(t, one, two, role, dir) })
	}
}

// TestRealParityOfArchitectures compares the engines on the layouts of published models: Llama's, which SmolLM2 has,
// Qwen2's and Mistral's.
func TestRealParityOfArchitectures(t *testing.T) {
	torch := fromPool(t, 1)
	defer torch.Close()
	for _, architecture := range []checkpoint.Architecture{checkpoint.Llama, checkpoint.Qwen2, checkpoint.Mistral} {
		t.Run(string(architecture), func(t *testing.T) {
			s := tiny
			s.Architecture, s.RopeTheta, s.NormEps = architecture, 100000, 1e-5
			ours, err := cpu.Open(cpu.Options{Threads: 2})
			require.NoError(t, err)
			defer ours.Close()
			requireParity(t, ours, torch, policy.RolePolicy, initialised(t, s, 11))
		})
	}
}
