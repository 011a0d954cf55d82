package main

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/internal/bench/work"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// size is a model's shape, and the work that its parts measure.
type size struct {
	name  string
	shape checkpoint.Shape

	row    int   // tokens of a micro-batch
	cuts   []int // lengths of its sequences, which add up to row; nil: one sequence
	micro  int   // micro-batches of an optimiser step
	prompt int   // tokens of a generation's prompt
	fresh  int   // new tokens
	batch  int   // rows that are generated together
}

func (s size) model() plan.Model { return plan.Of(s.shape) }

// qwen3 has the shapes of three published models, from their configurations.
var qwen3 = []size{
	ofQwen3("0.6B", checkpoint.Shape{Hidden: 1024, Layers: 28, Heads: 16, FFN: 3072}),
	ofQwen3("1.7B", checkpoint.Shape{Hidden: 2048, Layers: 28, Heads: 16, FFN: 6144}),
	ofQwen3("4B", checkpoint.Shape{Hidden: 2560, Layers: 36, Heads: 32, FFN: 9728}),
}

func sizeNames() (out []string) {
	for _, s := range qwen3 {
		out = append(out, s.name)
	}
	return out
}

func ofQwen3(name string, s checkpoint.Shape) size {
	s.Vocab, s.KVHeads, s.HeadDim, s.Positions, s.RopeTheta, s.NormEps, s.Pad = 151936, 8, 128, 40960, 1e6, 1e-6, -1
	return size{name: name, shape: s, row: 8192, micro: 4, prompt: 512, fresh: 256, batch: 64}
}

// miniature replaces all sizes on a processor.
var miniature = size{
	name: "miniature",
	shape: checkpoint.Shape{
		Vocab: 512, Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 192, Positions: 1024,
		RopeTheta: 10000, NormEps: 1e-6, Pad: -1,
	},
	row: 64, micro: 2, prompt: 16, fresh: 12, batch: 8,
}

// packed is the same work in sequences of different lengths, given in sixteenths of a micro-batch.
func (s size) packed() size {
	for _, share := range []int{5, 3, 3, 2, 1, 1, 1} {
		s.cuts = append(s.cuts, s.row*share/16)
	}
	return s
}

// lengths are those of a micro-batch's sequences.
func (s size) lengths() []int {
	if s.cuts == nil {
		return []int{s.row}
	}
	return s.cuts
}

// microbatch is language modelling on sequences drawn by the seed, a part of an optimiser step of all micro-batches.
func (s size) microbatch(seed uint64) work.MicroBatch {
	var rows [][]int32
	for i, n := range s.lengths() {
		rows = append(rows, s.randomRows(seed^uint64(i)<<48, 1, n)...)
	}
	return work.MicroBatch{Rows: rows, Cotangents: work.LanguageModelling(rows, s.micro*s.row)}
}

// randomRows are sequences of tokens drawn evenly from the vocabulary.
func (s size) randomRows(seed uint64, rows, length int) [][]int32 {
	return work.RandomRows(seed, 1, s.shape.Vocab, rows, length)
}

// adamW is the optimiser of every part, and of the peer.
var adamW = policy.StepOptions{LR: 1e-5,
	Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.1}, ClipNorm: 1}

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
