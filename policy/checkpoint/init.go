package checkpoint

import (
	"math"
	"strings"

	"github.com/ropewalk/ropewalk/internal/seed"
)

// initStd is the standard deviation of new matrices, transformers' initializer_range.
const initStd = 0.02

// Init writes a new random model to the empty folder dir. Matrices are normal with standard deviation 0.02. Those that
// write into the residual stream are scaled by 1/√(2·layers), so that its variance does not grow with depth (Radford et
// al. 2019, §2.3). Norms are 1. Biases and a value head start at 0. Each tensor has its own random stream, named by
// seed and tensor. extra holds the tokenizer's files.
func Init(dir string, s Shape, seedValue uint64, extra map[string][]byte) error {
	c, err := Fresh(s, seedValue)
	if err != nil {
		return err
	}
	c.Extra = extra
	_, err = Write(dir, c)
	return err
}

// Fresh is Init in memory.
func Fresh(s Shape, seedValue uint64) (*Checkpoint, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	c := &Checkpoint{Shape: s}
	for _, t := range s.Tensors() {
		t.Data = make([]float32, t.Size())
		fill(t, s, seedValue)
		c.Weights = append(c.Weights, t)
	}
	return c, nil
}

func fill(t Tensor, s Shape, seedValue uint64) {
	switch {
	case strings.HasPrefix(t.Name, "value_head."), strings.HasSuffix(t.Name, ".bias"):
		return
	case len(t.Dims) == 1:
		for i := range t.Data {
			t.Data[i] = 1
		}
		return
	}
	std := initStd
	if strings.HasSuffix(t.Name, ".o_proj.weight") || strings.HasSuffix(t.Name, ".down_proj.weight") {
		std /= math.Sqrt(2 * float64(s.Layers))
	}
	r := seed.Rand("checkpoint-init:"+t.Name, seedValue)
	for i := range t.Data {
		t.Data[i] = float32(r.NormFloat64() * std)
	}
}
