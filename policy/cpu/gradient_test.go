package cpu

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu/sgemm"
)

// tiny is a shape in which no two widths are equal, so that a mixed-up one shows.
var tiny = checkpoint.Shape{
	Vocab: 23, Hidden: 12, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 6, FFN: 20, Positions: 200,
	RopeTheta: 10000, NormEps: 1e-6, Pad: -1,
}

// yarn stretches the rotary embedding of tiny, and scales it.
var yarn = checkpoint.RopeScaling{
	Type: checkpoint.RopeYarn, Factor: 4, BetaFast: 32, BetaSlow: 1, Attention: 1.3, Original: 50,
}

// loaded returns a resident model whose weights are large enough for every path to carry gradient, norms included.
func loaded[T float](t testing.TB, s checkpoint.Shape, blas string, threads int) *resident[T] {
	t.Helper()
	c, err := checkpoint.Fresh(s, 7)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	for _, w := range c.Weights {
		for i := range w.Data {
			w.Data[i] += float32(0.3 * r.NormFloat64())
		}
	}
	lib, err := chooseLibrary(blas)
	require.NoError(t, err)
	resident, err := newResident[T](c, lib, threads)
	require.NoError(t, err)
	return resident
}

// libraries lists the BLAS libraries to test; OpenBLAS only where it is there.
func libraries(t testing.TB) []string {
	out := []string{blasGonum}
	if sgemm.Available() {
		out = append(out, blasOwn)
	}
	if _, err := loadOpenBLAS(); err != nil {
		t.Logf("OpenBLAS is not there: %v", err)
		return out
	}
	return append(out, blasOpenBLAS)
}

func randomSequences(seed uint64, vocab int, lengths ...int) [][]int32 {
	r := rand.New(rand.NewPCG(seed, 3))
	out := make([][]int32, len(lengths))
	for i, n := range lengths {
		for range n {
			out[i] = append(out[i], int32(r.IntN(vocab)))
		}
	}
	return out
}

// randomLike gives rows of normal numbers, with some zeros as a loss mask makes them.
func randomLike(seed uint64, seqs [][]int32) [][]float32 {
	r := rand.New(rand.NewPCG(seed, 4))
	out := make([][]float32, len(seqs))
	for i, s := range seqs {
		out[i] = make([]float32, len(s))
		for t := range s {
			if r.IntN(4) > 0 {
				out[i][t] = float32(r.NormFloat64())
			}
		}
	}
	return out
}

// objective is Σ cotangent·output in float64, straight from the heads, and its gradient if asked for.
func objective[T float](
	t testing.TB, r *resident[T], seqs [][]int32, co policy.Cotangents, temperature float64, grad bool,
) float64 {
	out := policy.OutLogProb | policy.OutEntropy
	if co.Values != nil {
		out |= policy.OutValue
	}
	req := policy.ForwardRequest{Sequences: seqs, Temperature: temperature, Outputs: out, Keep: true}
	to := newOutputs(req)
	pass, err := r.forward(context.Background(), req, &to)
	require.NoError(t, err)
	total := exactObjective(r, pass, temperature, co)
	if grad {
		require.NoError(t, r.backward(context.Background(), pass, co))
	}
	r.giveBack(pass)
	return total
}

// exactObjective recomputes the outputs from kept states without rounding them to float32.
func exactObjective[T float](r *resident[T], pass *keptPass[T], temperature float64, co policy.Cotangents) float64 {
	var total float64
	h, v := r.model.shape.Hidden, r.model.shape.Vocab
	for part, ks := range pass.parts {
		w := r.workers[part]
		for _, k := range ks {
			places := k.c.places()
			for _, t := range w.predicting(k.c, nil) {
				xn, z, e := make([]T, h), make([]T, v), make([]T, v)
				w.normRows(xn, k.a.out, []int{t})
				w.linear(z, xn, 1, r.model.f.head, false)
				d := distribute(z, e, temperature)
				p := places[t+1]
				if co.LogProbs != nil {
					total += float64(co.LogProbs[p.row][p.token]) * (float64(z[k.c.tokens[t+1]]) - d.logSum)
				}
				if co.Entropies != nil {
					total += float64(co.Entropies[p.row][p.token]) * d.entropy
				}
				if co.Values != nil {
					total += float64(co.Values[p.row][p.token]) * float64(
						dot(r.model.w.value[:h], xn)+r.model.w.value[h],
					)
				}
			}
		}
	}
	return total
}

func gradients[T float](t testing.TB, r *resident[T]) []T {
	g, _, err := r.gradient()
	require.NoError(t, err)
	return g
}

// TestGradientOfWholeModel compares every tensor's gradient with central differences. TestFloat32Gradient has the
// libraries.
func TestGradientOfWholeModel(t *testing.T) {
	for _, variant := range []string{"tied", "untied", "value", "qwen2", "llama"} {
		t.Run(variant, func(t *testing.T) {
			s := tiny
			s.Untied, s.ValueHead = variant == "untied", variant == "value"
			switch variant {
			case "qwen2":
				s.Architecture = checkpoint.Qwen2
			case "llama":
				s.Architecture, s.Rope = checkpoint.Llama, yarn
			}
			r := loaded[float64](t, s, blasGonum, 2)
			seqs := randomSequences(5, s.Vocab, 7, 1, 4, 70)
			co := policy.Cotangents{LogProbs: randomLike(1, seqs), Entropies: randomLike(2, seqs)}
			if s.ValueHead {
				co.Values = randomLike(3, seqs)
			}
			objective(t, r, seqs, co, 0.7, true)
			grad := append([]float64(nil), gradients(t, r)...)
			for _, p := range r.model.params {
				e := centralError(t, r, grad, p, func() float64 { return objective(t, r, seqs, co, 0.7, false) })
				require.LessOrEqualf(t, e, 1e-6, "relative L2 error of %s", p.name)
			}
		})
	}
}

// TestGradientOfOneOutput: each output's cotangents alone, as a critic's update or a bonus on entropy sends them.
func TestGradientOfOneOutput(t *testing.T) {
	s := tiny
	s.ValueHead, s.Untied = true, true
	seqs := randomSequences(8, s.Vocab, 9, 2, 40)
	for name, co := range map[string]policy.Cotangents{
		"log-probability": {LogProbs: randomLike(1, seqs)}, "entropy": {
			Entropies: randomLike(2, seqs),
		}, "value": {Values: randomLike(3, seqs)},
	} {
		t.Run(name, func(t *testing.T) {
			r := loaded[float64](t, s, blasGonum, 2)
			objective(t, r, seqs, co, 1.3, true)
			grad := append([]float64(nil), gradients(t, r)...)
			for _, p := range r.model.params {
				unread := p.name == checkpoint.NameHead
				if name != "value" {
					unread = strings.HasPrefix(p.name, "value_head.")
				}
				if unread {
					require.Zero(t, dot(grad[p.lo:p.hi], grad[p.lo:p.hi]), p.name)
					continue
				}
				e := centralError(t, r, grad, p, func() float64 { return objective(t, r, seqs, co, 1.3, false) })
				require.LessOrEqualf(t, e, 1e-6, "relative L2 error of %s", p.name)
			}
		})
	}
}

// centralError is the relative L2 error of grad on p against central differences; of large tensors a fixed
// sample of elements is compared.
func centralError[T float](t testing.TB, r *resident[T], grad []T, p param, f func() float64) float64 {
	t.Helper()
	const step, most = 1e-5, 12
	stride := max(1, (p.hi-p.lo)/most)
	var diff, norm float64
	for i := p.lo; i < p.hi; i += stride {
		was := r.model.flat[i]
		r.model.flat[i] = was + T(step)
		up := f()
		r.model.flat[i] = was - T(step)
		down := f()
		r.model.flat[i] = was
		want := (up - down) / (2 * step)
		diff += (want - float64(grad[i])) * (want - float64(grad[i]))
		norm += want * want
	}
	require.Positive(t, norm, "no gradient reaches %s", p.name)
	return math.Sqrt(diff / norm)
}

// TestFloat32Gradient holds the engine's precision against float64.
func TestFloat32Gradient(t *testing.T) {
	for _, blas := range libraries(t) {
		t.Run(blas, func(t *testing.T) {
			seqs := randomSequences(6, tiny.Vocab, 30, 90, 11)
			co := policy.Cotangents{
				LogProbs: randomLike(1, seqs), Entropies: randomLike(2, seqs), Values: randomLike(3, seqs),
			}
			s := tiny
			s.ValueHead = true
			narrow, wide := loaded[float32](t, s, blas, 2), loaded[float64](t, s, blas, 2)
			objective(t, narrow, seqs, co, 1, true)
			objective(t, wide, seqs, co, 1, true)
			g32, g64 := gradients(t, narrow), gradients(t, wide)
			for _, p := range narrow.model.params {
				var diff, norm float64
				for i := p.lo; i < p.hi; i++ {
					d := float64(g32[i]) - g64[i]
					diff, norm = diff+d*d, norm+g64[i]*g64[i]
				}
				require.LessOrEqual(t, math.Sqrt(diff/norm), 1e-3, p.name)
			}
		})
	}
}

func ExampleOpen() {
	e, err := Open(Options{Threads: 1, BLAS: blasGonum})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	fmt.Println(e.Describe().Threads, "thread")
	// Output: 1 thread
}
