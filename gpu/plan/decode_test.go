package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCacheBytes(t *testing.T) {
	require.EqualValues(t, 147_456, Of(qwen4B).CacheBytes(2), "2 · 36 layers · 8 heads · 128 · 2 bytes")
	smol, ok := Published("SmolLM2-135M-Instruct")
	require.True(t, ok)
	require.EqualValues(t, 46_080, Of(smol).CacheBytes(4), "2 · 30 · 3 · 64 · 4")
}

// A device of 1 GB/s and 1 Gflop/s, and a model of 1,000,000 numbers that are multiplied with, whose token has 2,000
// bytes of cache.
func TestDecodeSeconds(t *testing.T) {
	m := Model{Vocab: 1, Hidden: 1, Layers: 10, Heads: 1, KVHeads: 5, HeadDim: 10, FFN: 1, Params: 1_000_000,
		Tied: true}
	require.EqualValues(t, 2000, m.CacheBytes(2))
	one := m.DecodeSeconds(1, 1000, 2, Speed{Flops: 1e15, Bandwidth: 1e9})
	require.InEpsilon(t, (2e6+1000*2000)/1e9, one, 1e-12, "reading weights and one row's cache")
	many := m.DecodeSeconds(100, 1000, 2, Speed{Flops: 1e15, Bandwidth: 1e9})
	require.InEpsilon(t, (2e6+100*1000*2000)/1e9, many, 1e-12)
	computing := m.DecodeSeconds(100, 9, 2, Speed{Flops: 1e9, Bandwidth: 1e15})
	require.InEpsilon(t, 100*(2e6+4*10*1*10*10)/1e9, computing, 1e-12, "GenerateFlops of a tenth token")
	untied := m
	untied.Tied, untied.Vocab, untied.Hidden = false, 1000, 100
	require.InEpsilon(t, 2*900_000/1e9, untied.DecodeSeconds(1, 0, 2, Speed{Flops: 1e15, Bandwidth: 1e9}), 1e-12,
		"an embedding that is only looked up is not read")
}

func TestRolloutSeconds(t *testing.T) {
	m := Of(qwen4B)
	s := SpeedOf(989e12, 4.8e12, UsualAssumptions())
	r := Rollout{Rows: 64, Generated: 1000, Read: 500, Devices: 1, AtOnce: 64, Width: 2}
	step := m.DecodeSeconds(64, 1000, 2, s)
	reading := 64 * m.ForwardFlops(500) / (989e12 * 0.4)
	require.InEpsilon(t, 1000*step+reading, m.RolloutSeconds(r, s), 1e-12, "all rows together: a step for each token")
	r.AtOnce = 16
	require.InEpsilon(t, 4*1000*m.DecodeSeconds(16, 1000, 2, s)+reading, m.RolloutSeconds(r, s), 1e-12,
		"four times as many steps, each of a quarter of the rows")
	r.AtOnce, r.Devices = 64, 128
	require.InEpsilon(t, 1000*m.DecodeSeconds(0.5, 1000, 2, s)+reading/128, m.RolloutSeconds(r, s), 1e-12,
		"no row takes fewer steps than it has tokens")
	require.Zero(t, m.RolloutSeconds(Rollout{Devices: 1}, s))
	require.Zero(t, m.RolloutSeconds(Rollout{Rows: 1}, s))
}

func TestForwardIsAThirdOfTraining(t *testing.T) {
	m := Of(qwen4B)
	require.InEpsilon(t, 2*4_022_468_096.0*100+4*36*32*128*(100.0*101/2), m.ForwardFlops(100), 1e-12)
}

func TestAssumptions(t *testing.T) {
	require.NoError(t, UsualAssumptions().Validate())
	for name, a := range map[string]Assumed{
		"mfu is a share": {0, 1, 1}, "mbu is a share": {1, 1.5, 1}, "fill is a share": {1, 1, -1},
	} {
		require.ErrorContains(t, a.Validate(), name)
	}
}

// The numbers of parameters are those of the models' cards and files.
func TestPublished(t *testing.T) {
	for address, want := range map[string]int64{
		"hf://Qwen/Qwen3-0.6B": 596_049_920, "hf://Qwen/Qwen3-4B@main": 4_022_468_096,
		"hf://Qwen/Qwen3-4B-Base": 4_022_468_096, "hf://Qwen/Qwen3-8B": 8_190_735_360,
		"hf://Qwen/Qwen3-14B": 14_768_307_200, "hf://Qwen/Qwen3-32B": 32_762_123_264,
		"hf://Qwen/Qwen2.5-0.5B": 494_032_768, "hf://Qwen/Qwen2.5-1.5B-Instruct": 1_543_714_304,
		"hf://Qwen/Qwen2.5-3B-Instruct": 3_085_938_688, "hf://Qwen/Qwen2.5-7B-Instruct": 7_615_616_512,
		"hf://Qwen/Qwen2.5-14B-Instruct": 14_770_033_664, "hf://Qwen/Qwen2.5-32B-Instruct": 32_763_876_352,
		"hf://HuggingFaceTB/SmolLM2-135M-Instruct": 134_515_008, "SmolLM2-360M": 361_821_120,
		"hf://HuggingFaceTB/SmolLM2-1.7B": 1_711_376_384, "hf://meta-llama/Llama-3.1-8B-Instruct": 8_030_261_248,
		"hf://meta-llama/Llama-3.2-1B": 1_235_814_400, "hf://meta-llama/Llama-3.2-3B-Instruct": 3_212_749_824,
	} {
		shape, ok := Published(address)
		require.True(t, ok, address)
		require.Equal(t, want, shape.Params(), address)
	}
	for _, unknown := range []string{"hf://Qwen/Qwen3-30B-A3B", "", "hf://x/y", "run:x", "hf://Qwen/Qwen3-4B-VL"} {
		_, ok := Published(unknown)
		require.False(t, ok, unknown)
	}
}

// A row lies on one device, however many share the model.
func TestOneDeviceHoldsARow(t *testing.T) {
	m := Of(qwen4B)
	cut := m.UpdateMemory(Settings{BFloat16: true, Checkpointing: true, Tokens: 32768, Ranks: 4})
	row := m.UpdateMemory(Settings{BFloat16: true, Checkpointing: true, Tokens: 32768, Ranks: 4, Row: 18432})
	require.Equal(t, cut.Activations/8192*18432, row.Activations)
	require.Equal(t, cut.Weights, row.Weights)
	short := m.UpdateMemory(Settings{BFloat16: true, Checkpointing: true, Tokens: 32768, Ranks: 4, Row: 512})
	require.Equal(t, cut, short)
}
