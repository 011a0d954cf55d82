package cpu

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// small is the size of policy that trains in minutes on two cores.
var small = checkpoint.Shape{
	Vocab: 330, Hidden: 128, Layers: 3, Heads: 4, KVHeads: 2, HeadDim: 32, FFN: 256, Positions: 256,
	RopeTheta: 10000, NormEps: 1e-6, Pad: -1,
}

func benchEngine(b *testing.B) policy.Engine {
	dir := b.TempDir()
	require.NoError(b, checkpoint.Init(dir, small, 1, nil))
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
	e, ctx := benchEngine(b), context.Background()
	var lengths []int
	total := 0
	for i := range 256 {
		lengths = append(lengths, 40+i%41)
		total += 40 + i%41
	}
	seqs := randomSequences(1, small.Vocab, lengths...)
	co := policy.Cotangents{LogProbs: randomLike(1, seqs)}
	since := processorTime()
	for b.Loop() {
		out, err := e.Forward(ctx, policy.ForwardRequest{Role: policy.RolePolicy, Sequences: seqs, Temperature: 1, Outputs: policy.OutLogProb | policy.OutEntropy, Keep: true})
		require.NoError(b, err)
		require.NoError(b, e.Backward(ctx, policy.RolePolicy, out.Kept, co))
		_, err = e.Step(ctx, policy.RolePolicy, policy.StepOptions{LR: 1e-4, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, ClipNorm: 1})
		require.NoError(b, err)
	}
	report(b, total, since)
}

// BenchmarkGenerate samples 512 responses of 40 tokens to 32 prompts.
func BenchmarkGenerate(b *testing.B) {
	e, ctx := benchEngine(b), context.Background()
	prompts := randomSequences(1, small.Vocab, make([]int, 32)...)
	for i := range prompts {
		prompts[i] = randomSequences(uint64(i), small.Vocab, 20)[0]
	}
	req := policy.GenerateRequest{Role: policy.RolePolicy, Temperature: 1}
	for i := range 512 {
		req.Prefixes = append(req.Prefixes, prompts[i/16])
		req.Streams = append(req.Streams, uint64(i))
		req.MaxTokens = append(req.MaxTokens, 40)
	}
	since := processorTime()
	for b.Loop() {
		_, err := e.Generate(ctx, req)
		require.NoError(b, err)
	}
	report(b, 512*40, since)
}
