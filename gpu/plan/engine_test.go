package plan

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// keptScript prints what the engine counts for each of the configurations in its argument.
const keptScript = `
import json, sys
sys.path.insert(0, "../engine")
from types import SimpleNamespace
from ropewalk_engine.passes import kept_per_token
print(json.dumps([kept_per_token(SimpleNamespace(**c)) for c in json.loads(sys.argv[1])]))
`

// The engine decides by this count whether layers are computed again, and the estimate that devices are leased by must
// not be another.
func TestTheEnginesCount(t *testing.T) {
	interpreter := pythontest.Need(t, "TORCH", "torch", "transformers", "safetensors")
	shapes := []checkpoint.Shape{
		qwen4B,
		{Vocab: 512, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 128},
		{Vocab: 4096, Hidden: 512, Layers: 8, Heads: 8, KVHeads: 8, HeadDim: 64, FFN: 1536},
	}
	var configs []map[string]int
	for _, s := range shapes {
		configs = append(configs, map[string]int{
			"hidden_size": s.Hidden, "num_hidden_layers": s.Layers, "num_attention_heads": s.Heads,
			"num_key_value_heads": s.KVHeads,
			"head_dim":            s.HeadDim, "intermediate_size": s.FFN,
		})
	}
	argument, err := json.Marshal(configs)
	require.NoError(t, err)
	cmd := exec.Command(interpreter, "-I", "-c", keptScript, string(argument))
	out, err := cmd.Output()
	require.NoError(t, err)
	var want []int64
	require.NoError(t, json.Unmarshal(out, &want))
	require.Len(t, want, len(shapes))
	for i, s := range shapes {
		require.Equal(t, 4*want[i], Of(s).UpdateMemory(Settings{Tokens: 1}).Activations, "shape %d, float32", i)
	}
}
