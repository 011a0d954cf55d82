package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// qwen4B is the shape of Qwen3-4B.
var qwen4B = checkpoint.Shape{
	Vocab: 151936, Hidden: 2560, Layers: 36, Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 9728, Positions: 40960, RopeTheta: 1e6, NormEps: 1e-6,
}

func TestTrainFlops(t *testing.T) {
	m := Of(qwen4B)
	require.EqualValues(t, 4_022_468_096, m.Params, "as its authors count it")
	one := m.TrainFlops(8192)
	weights := 6 * 4_022_468_096.0 * 8192
	attention := 12 * 36 * 32 * 128 * (8192.0 * 8193 / 2)
	require.InEpsilon(t, weights+attention, one, 1e-12)
	require.InEpsilon(t, one, m.TrainFlops(4096, 4096)+12*36*32*128*(4096.0*4096), 1e-12, "rows do not attend to each other")
	require.Zero(t, m.TrainFlops())
	untied := qwen4B
	untied.Untied = true
	require.InEpsilon(t, m.TrainFlops(100), Of(untied).TrainFlops(100), 1e-12, "an embedding is looked up, not multiplied with")
	require.InEpsilon(t, 2*4_022_468_096.0+4*36*32*128*10, m.GenerateFlops(9), 1e-12)
}

func TestUpdateMemory(t *testing.T) {
	m := Of(qwen4B)
	p := m.Params
	full := m.UpdateMemory(Settings{BFloat16: true, Checkpointing: true, Tokens: 8192})
	require.Equal(t, 6*p, full.Weights)
	require.Equal(t, 4*p, full.Gradients)
	require.Equal(t, 8*p, full.Optimizer)
	require.EqualValues(t, 2*8192*(36*2560+5*2560+4*40*128+4*9728), full.Activations)
	require.Equal(t, full.Weights+full.Gradients+full.Optimizer+full.Activations+full.Head, full.Total())
	require.Contains(t, full.String(), "GiB a device (weights 22.5 GiB, gradients 15.0 GiB, optimiser 30.0 GiB, activations 2.5 GiB, output head")

	kept := m.UpdateMemory(Settings{BFloat16: true, Tokens: 8192})
	require.Greater(t, kept.Activations, 10*full.Activations, "checkpointing is for this")
	require.Zero(t, m.UpdateMemory(Settings{Offload: true, Tokens: 8192}).Optimizer)
	require.Equal(t, 4*p, m.UpdateMemory(Settings{Tokens: 8192}).Weights, "float32 needs no copy")
	two := m.UpdateMemory(Settings{BFloat16: true, Checkpointing: true, Tokens: 8192, Ranks: 2})
	require.Equal(t, 2*p, two.Gradients)
	require.Equal(t, full.Activations/2, two.Activations)
	require.Less(t, two.Total(), full.Total())
	few := m.UpdateMemory(Settings{Tokens: 1})
	require.Less(t, few.Head, full.Head, "a piece of the head holds no more than there is")
}

func TestPeakFlops(t *testing.T) {
	require.Equal(t, 989e12, PeakFlops("NVIDIA H200"))
	require.Equal(t, 148e12, PeakFlops("NVIDIA H20"))
	require.Equal(t, 756e12, PeakFlops("NVIDIA H100 PCIe"))
	require.Equal(t, 121e12, PeakFlops("NVIDIA L4"))
	require.Zero(t, PeakFlops("a processor"))
}
