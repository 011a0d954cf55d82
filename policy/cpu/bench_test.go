package cpu

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// small is the size of policy that trains in minutes on two cores.
var small = checkpoint.Shape{
	Vocab: 330, Hidden: 128, Layers: 3, Heads: 4, KVHeads: 2, HeadDim: 32, FFN: 256, Positions: 256,
	RopeTheta: 10000, NormEps: 1e-6, Pad: -1,
}

// sizes are those that internal/bench/engine compares with PyTorch, with their batches.
var sizes = []struct {
	name     string
	shape    checkpoint.Shape
	train    [2]int // batch, length
	generate [3]int // batch, prompt, new tokens
}{
	{"0.1M", benchShape(512, 64, 2, 2, 1, 32, 128), [2]int{64, 96}, [3]int{64, 32, 64}},
	{"3.3M", benchShape(512, 256, 4, 8, 4, 32, 768), [2]int{32, 256}, [3]int{32, 32, 64}},
	{"27M", benchShape(4096, 512, 8, 8, 4, 64, 1536), [2]int{8, 512}, [3]int{8, 32, 64}},
	{"135M", benchShape(49152, 576, 30, 9, 3, 64, 1536), [2]int{16, 48}, [3]int{16, 32, 16}},
}

func benchShape(vocab, hidden, layers, heads, kv, dim, ffn int) checkpoint.Shape {
	return checkpoint.Shape{
		Vocab: vocab, Hidden: hidden, Layers: layers, Heads: heads, KVHeads: kv, HeadDim: dim, FFN: ffn,
		Positions: 1024, RopeTheta: 10000, NormEps: 1e-6, Pad: -1,
	}
}

func benchEngine(b *testing.B, s checkpoint.Shape) policy.Engine {
	dir := b.TempDir()
	require.NoError(b, checkpoint.Init(dir, s, 1, nil))
	e, err := Open(Options{})
	require.NoError(b, err)
	require.NoError(b, e.Load(context.Background(), policy.RolePolicy, dir, false))
	b.Cleanup(func() { e.Close() })
	return e
}

// processorTime is what this process has used so far: unlike the wall clock it does not count its neighbours.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func report(b *testing.B, tokens int, since time.Duration) {
	n := float64(tokens) * float64(b.N)
	b.ReportMetric(n/b.Elapsed().Seconds(), "tok/s")
	b.ReportMetric(float64((processorTime()-since).Microseconds())/n, "cpu-µs/tok")
}

// BenchmarkTrain is one update: forward, backward, step.
func BenchmarkTrain(b *testing.B) {
	var lengths []int
	for i := range 256 {
		lengths = append(lengths, 40+i%41)
	}
	b.Run("quickstart", func(b *testing.B) { benchTrain(b, small, lengths) })
	for _, s := range sizes {
		b.Run(s.name, func(b *testing.B) { benchTrain(b, s.shape, slices.Repeat([]int{s.train[1]}, s.train[0])) })
	}
}

func benchTrain(b *testing.B, s checkpoint.Shape, lengths []int) {
	e, ctx := benchEngine(b, s), context.Background()
	total := 0
	for _, n := range lengths {
		total += n
	}
	seqs := randomSequences(1, s.Vocab, lengths...)
	co := policy.Cotangents{LogProbs: randomLike(1, seqs)}
	since := processorTime()
	for b.Loop() {
		out, err := e.Forward(
			ctx,
			policy.ForwardRequest{
				Role: policy.RolePolicy, Sequences: seqs, Temperature: 1,
				Outputs: policy.OutLogProb | policy.OutEntropy, Keep: true,
			},
		)
		require.NoError(b, err)
		require.NoError(b, e.Backward(ctx, policy.RolePolicy, out.Kept, co))
		_, err = e.Step(
			ctx, policy.RolePolicy, policy.StepOptions{LR: 1e-4,
				Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8}, ClipNorm: 1},
		)
		require.NoError(b, err)
	}
	report(b, total, since)
}

// BenchmarkGenerate samples responses: in the quickstart 16 of 40 tokens to each of 32 prompts, else one a prompt.
func BenchmarkGenerate(b *testing.B) {
	b.Run("quickstart", func(b *testing.B) { benchGenerate(b, small, 32, 16, 20, 40) })
	for _, s := range sizes {
		b.Run(s.name, func(b *testing.B) { benchGenerate(b, s.shape, s.generate[0], 1, s.generate[1], s.generate[2]) })
	}
}

func benchGenerate(b *testing.B, s checkpoint.Shape, prompts, each, prompt, tokens int) {
	e, ctx := benchEngine(b, s), context.Background()
	req := policy.GenerateRequest{Role: policy.RolePolicy, Temperature: 1}
	for i := range prompts * each {
		req.Prefixes = append(req.Prefixes, randomSequences(uint64(i/each), s.Vocab, prompt)[0])
		req.Streams = append(req.Streams, uint64(i))
		req.MaxTokens = append(req.MaxTokens, tokens)
	}
	since := processorTime()
	for b.Loop() {
		_, err := e.Generate(ctx, req)
		require.NoError(b, err)
	}
	report(b, prompts*each*tokens, since)
}

// BenchmarkSharedPrompts is forward and backward of 6 groups of 12 rows, with and without sharing prompts of 30 tokens
// before answers of 11, in the sizes of SmolLM2-135M. Rates count the tokens of whole rows.
func BenchmarkSharedPrompts(b *testing.B) {
	const groups, each, prompt, answer = 6, 12, 30, 11
	s := sizes[len(sizes)-1].shape
	var rows, co = [][]int32{}, policy.Cotangents{}
	var shared []int
	for i := range groups * each {
		row := append(randomSequences(uint64(i/each), s.Vocab, prompt)[0],
			randomSequences(uint64(1000+i), s.Vocab, answer)[0]...)
		weights := randomLike(uint64(i), [][]int32{row})[0]
		clear(weights[:prompt])
		rows, shared, co.LogProbs = append(rows, row), append(shared, prompt), append(co.LogProbs, weights)
	}
	for name, shares := range map[string][]int{"whole": nil, "shared": shared} {
		b.Run(name, func(b *testing.B) {
			e := benchEngine(b, s)
			since := processorTime()
			for b.Loop() {
				out, err := e.Forward(b.Context(), policy.ForwardRequest{Role: policy.RolePolicy, Sequences: rows,
					Shared: shares, Temperature: 1, Outputs: policy.OutLogProb | policy.OutEntropy, Keep: true})
				require.NoError(b, err)
				require.NoError(b, e.Backward(b.Context(), policy.RolePolicy, out.Kept, co))
			}
			report(b, len(rows)*(prompt+answer), since)
		})
	}
}

// BenchmarkDecode is a step of a batch that generates one token for each of a few rows, in the sizes of SmolLM2-135M. A
// step reads all weights once; GB/s says how fast.
func BenchmarkDecode(b *testing.B) {
	s := sizes[len(sizes)-1].shape
	e := benchEngine(b, s)
	for _, rows := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			benchDecode(b, e, s, rows)
			b.ReportMetric(float64(4*s.Params())*float64(b.N)/b.Elapsed().Seconds()*1e-9, "GB/s")
		})
	}
}

// BenchmarkDecodeNextTo is a step of a batch of the quickstart's size, next to nothing and next to another engine of
// the same program that trains, as in a run whose rollouts run ahead of its updates.
func BenchmarkDecodeNextTo(b *testing.B) {
	for _, rows := range []int{64, 256} {
		for _, next := range []string{"nothing", "training"} {
			b.Run(fmt.Sprintf("%s/%d", next, rows), func(b *testing.B) {
				ctx, stop := context.WithCancel(b.Context())
				var training sync.WaitGroup
				defer training.Wait()
				defer stop()
				if next == "training" {
					e := benchEngine(b, small)
					training.Go(func() { trainUntil(ctx, b, e) })
				}
				benchDecode(b, benchEngine(b, small), small, rows)
			})
		}
	}
}

// benchDecode times steps of a batch that generates one token for each of its rows.
func benchDecode(b *testing.B, e policy.Engine, s checkpoint.Shape, rows int) {
	batch, err := e.(policy.Batcher).Batch(b.Context(), policy.RolePolicy, policy.BatchOptions{Rows: rows})
	require.NoError(b, err)
	defer batch.Close()
	steps := 0
	for b.Loop() {
		if steps == 0 {
			b.StopTimer()
			steps = decodeSteps
			startRows(b, batch, s, rows, steps)
			b.StartTimer()
		}
		_, err := batch.Step(b.Context())
		require.NoError(b, err)
		steps--
	}
}

// trainUntil accumulates gradients until ctx ends.
func trainUntil(ctx context.Context, b *testing.B, e policy.Engine) {
	seqs := randomSequences(1, small.Vocab, slices.Repeat([]int{60}, 256)...)
	co := policy.Cotangents{LogProbs: randomLike(1, seqs)}
	for ctx.Err() == nil {
		out, err := e.Forward(context.WithoutCancel(ctx), policy.ForwardRequest{Role: policy.RolePolicy,
			Sequences: seqs, Temperature: 1, Outputs: policy.OutLogProb | policy.OutEntropy, Keep: true})
		if !assert.NoError(b, err) ||
			!assert.NoError(b, e.Backward(context.WithoutCancel(ctx), policy.RolePolicy, out.Kept, co)) {
			return
		}
	}
}

// decodeSteps is how many tokens a row generates before others take its place.
const decodeSteps = 64

// startRows adds rows to a batch in which none is left, and reads their prefixes, which gives them their first tokens.
func startRows(b *testing.B, batch policy.Batch, s checkpoint.Shape, rows, steps int) {
	for i := range rows {
		_, err := batch.Add(b.Context(), policy.BatchRow{Prefix: randomSequences(uint64(i), s.Vocab, 64)[0],
			Stream: uint64(i), MaxTokens: steps + 1, Temperature: 1})
		require.NoError(b, err)
	}
	for sampled := 0; sampled < rows; {
		events, err := batch.Step(b.Context())
		require.NoError(b, err)
		sampled = len(events)
	}
}
