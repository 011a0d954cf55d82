package plan

import (
	"strings"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// published are the shapes of models on hubs by the name of their repository, from their config.json files. A model
// that is fetched brings its own, which counts. Base and instruction-tuned models of a size have one shape, except for
// their longest sequence, which no estimate depends on.
var published = map[string]checkpoint.Shape{
	"qwen3-0.6b": qwen3(1024, 28, 16, 3072, false), "qwen3-1.7b": qwen3(2048, 28, 16, 6144, false),
	"qwen3-4b": qwen3(2560, 36, 32, 9728, false), "qwen3-8b": qwen3(4096, 36, 32, 12288, true),
	"qwen3-14b": qwen3(5120, 40, 40, 17408, true), "qwen3-32b": qwen3(5120, 64, 64, 25600, true),

	"qwen2.5-0.5b": qwen25(151936, 896, 24, 14, 2, 64, 4864, false),
	"qwen2.5-1.5b": qwen25(151936, 1536, 28, 12, 2, 128, 8960, false),
	"qwen2.5-3b":   qwen25(151936, 2048, 36, 16, 2, 128, 11008, false),
	"qwen2.5-7b":   qwen25(152064, 3584, 28, 28, 4, 128, 18944, true),
	"qwen2.5-14b":  qwen25(152064, 5120, 48, 40, 8, 128, 13824, true),
	"qwen2.5-32b":  qwen25(152064, 5120, 64, 40, 8, 128, 27648, true),

	"smollm2-135m": llama(49152, 576, 30, 9, 3, 64, 1536, false),
	"smollm2-360m": llama(49152, 960, 32, 15, 5, 64, 2560, false),
	"smollm2-1.7b": llama(49152, 2048, 24, 32, 32, 64, 8192, false),
	"llama-3.1-8b": llama(128256, 4096, 32, 32, 8, 128, 14336, true),
	"llama-3.2-1b": llama(128256, 2048, 16, 32, 8, 64, 8192, false),
	"llama-3.2-3b": llama(128256, 3072, 28, 24, 8, 128, 8192, false),
}

func qwen3(hidden, layers, heads, ffn int, untied bool) checkpoint.Shape {
	return checkpoint.Shape{Architecture: checkpoint.Qwen3, Vocab: 151936, Hidden: hidden, Layers: layers, Heads: heads,
		KVHeads: 8, HeadDim: 128, FFN: ffn, Untied: untied}
}

func qwen25(vocab, hidden, layers, heads, kvHeads, headDim, ffn int, untied bool) checkpoint.Shape {
	return checkpoint.Shape{Architecture: checkpoint.Qwen2, Vocab: vocab, Hidden: hidden, Layers: layers, Heads: heads,
		KVHeads: kvHeads, HeadDim: headDim, FFN: ffn, Untied: untied}
}

func llama(vocab, hidden, layers, heads, kvHeads, headDim, ffn int, untied bool) checkpoint.Shape {
	return checkpoint.Shape{Architecture: checkpoint.Llama, Vocab: vocab, Hidden: hidden, Layers: layers, Heads: heads,
		KVHeads: kvHeads, HeadDim: headDim, FFN: ffn, Untied: untied}
}

// tunings are endings of repositories' names that change no size.
var tunings = []string{"-base", "-instruct", "-hf"}

// Published returns the shape of a published model by the name in its address: hf://Qwen/Qwen3-4B-Base@REVISION, or the
// name alone. ok is false if the program does not know it.
func Published(address string) (shape checkpoint.Shape, ok bool) {
	name, _, _ := strings.Cut(strings.TrimPrefix(address, "hf://"), "@")
	name = strings.ToLower(name[strings.LastIndex(name, "/")+1:])
	for _, t := range tunings {
		name = strings.TrimSuffix(name, t)
	}
	shape, ok = published[name]
	return shape, ok
}
