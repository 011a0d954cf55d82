package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// qwen4B is the shape of Qwen3-4B.
var qwen4B = checkpoint.Shape{
	Vocab: 151936, Hidden: 2560, Layers: 36, Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 9728, Positions: 40960,
	RopeTheta: 1e6, NormEps: 1e-6,
}

func TestTrainFlops(t *testing.T) {
	m := Of(qwen4B)
	require.EqualValues(t, 4_022_468_096, m.Params, "as its authors count it")
	one := m.TrainFlops(8192)
	weights := 6 * 4_022_468_096.0 * 8192
	attention := 12 * 36 * 32 * 128 * (8192.0 * 8193 / 2)
	require.InEpsilon(t, weights+attention, one, 1e-12)
	require.InEpsilon(
		t, one, m.TrainFlops(4096, 4096)+12*36*32*128*(4096.0*4096), 1e-12, "rows do not attend to each other",
	)
	require.Zero(t, m.TrainFlops())
	untied := qwen4B
	untied.Untied = true
	require.InEpsilon(
		t, m.TrainFlops(100), Of(untied).TrainFlops(100), 1e-12, "an embedding is looked up, not multiplied with",
	)
	require.InEpsilon(t, 2*4_022_468_096.0+4*36*32*128*10, m.GenerateFlops(9), 1e-12)
}

func TestUpdateMemory(t *testing.T) {
	m := Of(qwen4B)
	p := m.Params
	full := m.UpdateMemory(Settings{States: 2, BFloat16: true, Checkpointing: true, Tokens: 8192})
	require.Equal(t, 6*p, full.Weights)
	require.Equal(t, 4*p, full.Gradients)
	require.Equal(t, 8*p, full.Optimizer)
	require.EqualValues(t, 2*8192*(36*2560+5*2560+4*40*128+4*9728), full.Activations)
	require.Equal(t, full.Weights+full.Gradients+full.Optimizer+full.Activations+full.Head, full.Total())
	require.Contains(
		t, full.String(),
		"GiB a device (weights 22.5 GiB, gradients 15.0 GiB, optimiser 30.0 GiB, activations 2.5 GiB, output head",
	)

	kept := m.UpdateMemory(Settings{States: 2, BFloat16: true, Tokens: 8192})
	require.Greater(t, kept.Activations, 10*full.Activations, "checkpointing is for this")
	require.Zero(t, m.UpdateMemory(Settings{States: 2, Offload: true, Tokens: 8192}).Optimizer)
	require.Equal(t, 4*p, m.UpdateMemory(Settings{States: 2, Tokens: 8192}).Weights, "float32 needs no copy")
	two := m.UpdateMemory(Settings{States: 2, BFloat16: true, Checkpointing: true, Tokens: 8192, Ranks: 2})
	require.Equal(t, 2*p, two.Gradients)
	require.Equal(t, full.Activations/2, two.Activations)
	require.Less(t, two.Total(), full.Total())
	few := m.UpdateMemory(Settings{States: 2, Tokens: 1})
	require.Less(t, few.Head, full.Head, "a piece of the head holds no more than there is")
}

// An adapter alone has gradients, masters and moments; the model has its rounded copy and no more.
func TestUpdateMemoryOfAnAdapter(t *testing.T) {
	m := Of(qwen4B)
	a := Adapter{Rank: 16, Targets: []string{"q_proj", "v_proj", "down_proj"}}
	trained := m.AdapterParams(a)
	require.EqualValues(t, 36*16*((2560+4096)+(2560+1024)+(9728+2560)), trained, "worked by hand")
	got := m.UpdateMemory(Settings{States: 2, BFloat16: true, Checkpointing: true, Tokens: 8192, Adapter: &a})
	require.Equal(t, 2*m.Params+6*trained, got.Weights)
	require.Equal(t, 4*trained, got.Gradients)
	require.Equal(t, 8*trained, got.Optimizer)
	full := m.UpdateMemory(Settings{States: 2, BFloat16: true, Checkpointing: true, Tokens: 8192})
	require.EqualValues(t, full.Head-6*151936*2560, got.Head, "the frozen head has no gradient")
	require.EqualValues(t, full.Activations+2*8192*3*16, got.Activations)
	require.Equal(t, 4*(m.Params+trained), m.UpdateMemory(Settings{States: 2, Tokens: 1, Adapter: &a}).Weights)
	two := m.UpdateMemory(Settings{States: 2, BFloat16: true, Tokens: 8192, Ranks: 2, Adapter: &a})
	require.Equal(t, 2*trained, two.Gradients)
	require.Zero(t, m.UpdateMemory(Settings{States: 2, Offload: true, Tokens: 1, Adapter: &a}).Optimizer)

	difference := m.TrainFlops(100, 20) - m.AdapterTrainFlops(a, 100, 20)
	require.InEpsilon(t, 120*(2*float64(m.Params)-6*float64(trained)), difference, 1e-9)
}

func TestPeakFlops(t *testing.T) {
	require.Equal(t, 989e12, PeakFlops("NVIDIA H200"))
	require.Equal(t, 148e12, PeakFlops("NVIDIA H20"))
	require.Equal(t, 756e12, PeakFlops("NVIDIA H100 PCIe"))
	require.Equal(t, 121e12, PeakFlops("NVIDIA L4"))
	require.Zero(t, PeakFlops("a processor"))
}
