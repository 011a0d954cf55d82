package plan

import (
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

func TestProcessorMemoryByHand(t *testing.T) {
	m := Of(checkpoint.Shape{Vocab: 100, Hidden: 8, Layers: 3, Heads: 2, KVHeads: 1, HeadDim: 4, FFN: 16})
	got := m.ProcessorMemory(10, 2, 2, false)
	require.Equal(t, 4*m.Params, got.Weights)
	require.Equal(t, 8*m.Params, got.Gradients, "one for each thread")
	require.Equal(t, 8*m.Params, got.Optimizer)
	require.EqualValues(t, 4*10*(3*(16+16+8+2+32)+8)+4*2*512*(3*8+4*8+4*4+4*16)*9/8, got.Activations)
	require.EqualValues(t, 4*2*512*100, got.Head)
	require.Equal(t, 12*m.Params, m.ProcessorMemory(10, 2, 2, true).Weights)
}

// The heap of an engine that has taken a step is what the estimate says.
func TestProcessorMemoryMeasured(t *testing.T) {
	shape := checkpoint.Shape{Vocab: 1024, Hidden: 128, Layers: 8, Heads: 4, KVHeads: 2, HeadDim: 32, FFN: 384,
		Positions: 512, RopeTheta: 10000, NormEps: 1e-6, Pad: -1}
	dir := filepath.Join(t.TempDir(), "model")
	require.NoError(t, checkpoint.Init(dir, shape, 1, nil))
	before := heap()
	e, err := cpu.Open(cpu.Options{Threads: 2})
	require.NoError(t, err)
	defer e.Close()
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, true))

	const rows, length = 16, 256
	random := rand.New(rand.NewPCG(1, 2))
	sequences, cotangents := make([][]int32, rows), make([][]float32, rows)
	for i := range sequences {
		cotangents[i] = make([]float32, length)
		for j := range length {
			sequences[i] = append(sequences[i], int32(random.IntN(shape.Vocab)))
			if j > 0 {
				cotangents[i][j] = 1e-3
			}
		}
	}
	step := func() int64 {
		out, err := e.Forward(t.Context(), policy.ForwardRequest{Role: policy.RolePolicy, Sequences: sequences,
			Temperature: 1, Outputs: policy.OutLogProb, Keep: true})
		require.NoError(t, err)
		holding := heap()
		require.NoError(t, e.Backward(t.Context(), policy.RolePolicy, out.Kept,
			policy.Cotangents{LogProbs: cotangents}))
		_, err = e.Step(t.Context(), policy.RolePolicy, policy.StepOptions{LR: 1e-4,
			Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8}})
		require.NoError(t, err)
		return holding
	}
	step() // makes gradients and moments
	measured := step() - before
	want := Of(shape).ProcessorMemory(rows*length, 2, 2, false).Total()
	t.Logf("estimated %d bytes, measured %d", want, measured)
	require.InEpsilon(t, want, measured, 0.15)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
