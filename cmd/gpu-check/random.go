package main

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// randomModel writes a model of random bfloat16 weights, which have the distribution of checkpoint.Init. The weights
// are drawn while they are written, so a model of billions of parameters takes a few seconds and little memory.
func randomModel(dir string, s checkpoint.Shape, seedValue uint64) error {
	const std = 0.02
	plain, scaled := quantiles(std), quantiles(std/math.Sqrt(2*float64(s.Layers)))
	c := &checkpoint.Checkpoint{Shape: s}
	for _, t := range s.Tensors() {
		d := draws{plain, seed.Rand("gpu-check/model "+t.Name, seedValue)}
		switch {
		case len(t.Dims) == 1:
			d.table = nil
		case strings.HasSuffix(t.Name, ".o_proj.weight"), strings.HasSuffix(t.Name, ".down_proj.weight"):
			d.table = scaled
		}
		c.Weights = append(c.Weights, checkpoint.TensorFrom(t.Name, t.Dims, d))
	}
	return checkpoint.WriteModel(dir, c, checkpoint.BF16)
}

// draws are random numbers from a table, in the order in which they are read; without a table they are 1.
type draws struct {
	table  *[1 << 16]float32
	random *rand.Rand
}

// ReadNumbers takes four numbers from each draw.
func (d draws) ReadNumbers(_ int, numbers []float32) error {
	var bits uint64
	for i := range numbers {
		if d.table == nil {
			numbers[i] = 1
			continue
		}
		if i%4 == 0 {
			bits = d.random.Uint64()
		}
		numbers[i] = d.table[uint16(bits>>(16*(i%4)))]
	}
	return nil
}

// quantiles returns the quantiles (i+½)/65536 of the normal distribution with mean 0.
func quantiles(std float64) *[1 << 16]float32 {
	out := new([1 << 16]float32)
	for i := range out {
		out[i] = float32(std * math.Sqrt2 * math.Erfinv((2*float64(i)+1)/(1<<16)-1))
	}
	return out
}
