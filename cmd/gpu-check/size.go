package main

import (
	"math/rand/v2"

	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/internal/bench/work"
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
	return work.RandomRows(rand.New(rand.NewPCG(seed, 1)), s.shape.Vocab, rows, length)
}

// adamW is the optimiser of every part, and of the peer.
var adamW = policy.StepOptions{LR: 1e-5,
	Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.1}, ClipNorm: 1}
