package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/policy"
)

// The goals of sampling.
const (
	leastOverTransformers = 2
	mostMeanDelta         = 2e-2
)

// generate compares the speed of sampling with transformers' generate, and its outputs with forward passes.
func generate(ctx context.Context, l *lab, r *bench.Report) error {
	return l.each(ctx, r, l.generateOf, "0.6B", "1.7B")
}

func (l *lab) generateOf(ctx context.Context, r *bench.Report, s size) error {
	e, err := l.loaded(ctx, s, settings{dtype: l.dtype(), checkpointing: "on"})
	if err != nil {
		return err
	}
	req := s.generation(s.batch)
	got, seconds, err := l.timeGeneration(ctx, e, req)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s, %d × (%d + %d)", s.name, s.batch, s.prompt, s.fresh)
	ours := float64(s.batch*s.fresh) / bench.Median(seconds) // new tokens; the time includes the prompts
	r.Add(name, bench.Of("tokens/s", ours))
	if err := compareForward(ctx, r, e, req, got); err != nil {
		return err
	}
	if err := compareBatches(ctx, r, e, req, got); err != nil {
		return err
	}
	if err := e.Unload(ctx, policy.RolePolicy); err != nil {
		return err
	}
	theirs, err := l.peerGeneration(ctx, s)
	if errors.Is(err, errPeerMemory) {
		r.Note("transformers", "%v", err)
		return nil
	}
	r.Add("transformers", bench.Of("tokens/s", theirs),
		bench.Of("engine ÷ it", ours/theirs).AtLeast(leastOverTransformers))
	return err
}

// generation asks for the full budget of tokens in every row: there are no stop tokens.
func (s size) generation(rows int) policy.GenerateRequest {
	req := policy.GenerateRequest{Role: policy.RolePolicy, Prefixes: s.randomRows(5, rows, s.prompt), Temperature: 1}
	for i := range rows {
		req.Streams = append(req.Streams, uint64(1000+i))
		req.MaxTokens = append(req.MaxTokens, s.fresh)
	}
	return req
}

func (l *lab) repeats() int {
	if l.o.short {
		return 1
	}
	return 3
}

// timeGeneration generates once to warm up, then several times. It returns the last rows and the seconds of each time.
func (l *lab) timeGeneration(
	ctx context.Context, e policy.Engine, req policy.GenerateRequest,
) (got policy.Generated, seconds []float64, err error) {
	_, seconds, err = timed(ctx, "generate", l.repeats(), 0, func() (err error) {
		got, err = e.Generate(ctx, req)
		return err
	})
	return got, seconds, err
}

// peerGeneration is the peer's new tokens a second.
func (l *lab) peerGeneration(ctx context.Context, s size) (float64, error) {
	a, err := l.ask(ctx, job{"job": "generate", "shape": s.shape, "batch": s.batch, "prompt": s.prompt, "new": s.fresh,
		"repeats": l.repeats()})
	if err != nil {
		return 0, err
	}
	return float64(s.batch*s.fresh) / bench.Median(a.Seconds), nil
}

// compareForward compares the generated rows with forward passes over the whole sequences.
func compareForward(ctx context.Context, r *bench.Report, e policy.Engine, req policy.GenerateRequest,
	got policy.Generated) error {
	var whole [][]int32
	for i, p := range req.Prefixes {
		whole = append(whole, slices.Concat(p, got.Tokens[i]))
	}
	out, err := e.Forward(ctx, policy.ForwardRequest{Role: policy.RolePolicy, Sequences: whole, Temperature: 1,
		Outputs: policy.OutLogProb | policy.OutEntropy})
	if err != nil {
		return err
	}
	mean, most := apart(req.Prefixes, got.LogProbs, out.LogProbs)
	r.Add("|Δ log p| against Forward", bench.Of("mean", mean).AtMost(mostMeanDelta), bench.Of("most", most))
	mean, most = apart(req.Prefixes, got.Entropies, out.Entropies)
	r.Add("|Δ entropy| against Forward", bench.Of("mean", mean), bench.Of("most", most))
	return nil
}

// apart is the mean and the greatest difference between the values of new tokens and those of whole sequences.
func apart(prefixes [][]int32, fresh, whole [][]float32) (mean, most float64) {
	var sum, n float64
	for i, row := range fresh {
		for t, x := range row {
			d := math.Abs(float64(x) - float64(whole[i][len(prefixes[i])+t]))
			sum, n, most = sum+d, n+1, max(most, d)
		}
	}
	return sum / max(1, n), most
}

// compareBatches generates the same rows in four batches. A row counts up to its first token that rounding has flipped.
func compareBatches(ctx context.Context, r *bench.Report, e policy.Engine, req policy.GenerateRequest,
	together policy.Generated) error {
	looked, flips, part := 0, 0, max(1, len(req.Prefixes)/4)
	for from := 0; from < len(req.Prefixes); from += part {
		to := min(from+part, len(req.Prefixes))
		some := req
		some.Prefixes, some.Streams, some.MaxTokens = req.Prefixes[from:to], req.Streams[from:to],
			req.MaxTokens[from:to]
		got, err := e.Generate(ctx, some)
		if err != nil {
			return err
		}
		for i, row := range got.Tokens {
			same := equalFor(row, together.Tokens[from+i])
			looked += same
			if same < len(row) {
				looked, flips = looked+1, flips+1
			}
		}
	}
	r.Add("flipped by another batch", bench.Of("rows", float64(flips)),
		bench.Of("share of tokens", float64(flips)/float64(max(1, looked))))
	return nil
}

// equalFor is the number of equal tokens at the start of two rows.
func equalFor(a, b []int32) int {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return len(a)
}
