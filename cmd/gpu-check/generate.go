package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/policy"
)

// generateFigures compares the speed of sampling with transformers' generate, and its outputs with forward passes.
type generateFigures struct {
	Sizes []generateSize `json:"sizes"`
}

type generateSize struct {
	Size            string  `json:"size"`
	Batch           int     `json:"batch"`
	Prompt          int     `json:"prompt_tokens"`
	New             int     `json:"new_tokens"`
	TokensPerSecond float64 `json:"tokens_per_s"` // new tokens; the time includes the prompts
	Peer            float64 `json:"transformers_tokens_per_s,omitempty"`
	PeerError       string  `json:"transformers_error,omitempty"`
	Ratio           float64 `json:"ratio,omitempty"`

	// The differences between Generate's and Forward's log-probabilities and entropies of the same tokens.
	MeanDelta        float64 `json:"mean_logprob_delta"`
	MaxDelta         float64 `json:"max_logprob_delta"`
	MeanEntropyDelta float64 `json:"mean_entropy_delta"`
	MaxEntropyDelta  float64 `json:"max_entropy_delta"`

	// The same rows are generated together and in batches of a quarter. RowsFlipped counts the rows that differ.
	// FlipRate is the share of tokens that rounding flipped, where a row counts up to its first flipped token.
	RowsFlipped int     `json:"rows_flipped"`
	FlipRate    float64 `json:"flip_rate"`
}

// generate measures sampling.
func generate(ctx context.Context, l *lab) (figures, error) {
	sizes, err := l.sizes("0.6B", "1.7B")
	if err != nil {
		return nil, err
	}
	out := &generateFigures{}
	for _, s := range sizes {
		found, err := l.generateOf(ctx, s)
		if err != nil {
			return out, fmt.Errorf("%s: %w", s.name, err)
		}
		out.Sizes = append(out.Sizes, found)
	}
	return out, nil
}

func (l *lab) generateOf(ctx context.Context, s size) (generateSize, error) {
	out := generateSize{Size: s.name, Batch: s.batch, Prompt: s.prompt, New: s.fresh}
	e, err := l.withEngine(ctx, settings{dtype: l.dtype(), checkpointing: "on"})
	if err != nil {
		return out, err
	}
	dir, err := l.model(s)
	if err != nil {
		return out, err
	}
	if err := e.Load(ctx, policy.RolePolicy, dir, false); err != nil {
		return out, err
	}
	req := s.generation(s.batch)
	got, seconds, err := l.timeGeneration(ctx, e, req)
	if err != nil {
		return out, err
	}
	out.TokensPerSecond = float64(s.batch*s.fresh) / bench.Median(seconds)
	if err := out.compareForward(ctx, e, req, got); err != nil {
		return out, err
	}
	if err := out.compareBatches(ctx, e, req, got); err != nil {
		return out, err
	}
	if err := e.Unload(ctx, policy.RolePolicy); err != nil {
		return out, err
	}
	return out, l.peerGeneration(ctx, s, &out)
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
	once := bench.Side[float64]{Name: "generate", Measure: func(ctx context.Context) (took float64, err error) {
		began := time.Now()
		got, err = e.Generate(ctx, req)
		return time.Since(began).Seconds(), err
	}}
	if _, err = once.Measure(ctx); err != nil {
		return got, nil, err
	}
	all, err := bench.TakeTurns(ctx, bench.Rounds(l.repeats()), once)
	if err != nil {
		return got, nil, err
	}
	return got, all[0], nil
}

func (l *lab) peerGeneration(ctx context.Context, s size, out *generateSize) error {
	var a generatedIn
	err := l.ask(
		ctx,
		generateJob{
			Job: "generate", Shape: s.shape, Batch: s.batch, Prompt: s.prompt, New: s.fresh, Repeats: l.repeats(),
		},
		&a,
	)
	if err == nil {
		err = failure(a.Error)
	}
	if errors.Is(err, errPeerMemory) {
		out.PeerError = err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	out.Peer = float64(s.batch*s.fresh) / bench.Median(a.Seconds)
	out.Ratio = out.TokensPerSecond / out.Peer
	return nil
}

// compareForward compares the generated rows with forward passes over the whole sequences.
func (g *generateSize) compareForward(
	ctx context.Context, e policy.Engine, req policy.GenerateRequest, got policy.Generated,
) error {
	var whole [][]int32
	for i, p := range req.Prefixes {
		whole = append(whole, append(append([]int32{}, p...), got.Tokens[i]...))
	}
	out, err := e.Forward(
		ctx,
		policy.ForwardRequest{
			Role: policy.RolePolicy, Sequences: whole, Temperature: 1, Outputs: policy.OutLogProb | policy.OutEntropy,
		},
	)
	if err != nil {
		return err
	}
	g.MeanDelta, g.MaxDelta = apart(req.Prefixes, got.LogProbs, out.LogProbs)
	g.MeanEntropyDelta, g.MaxEntropyDelta = apart(req.Prefixes, got.Entropies, out.Entropies)
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

// compareBatches generates the same rows in four batches.
func (g *generateSize) compareBatches(
	ctx context.Context, e policy.Engine, req policy.GenerateRequest, together policy.Generated,
) error {
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
	g.RowsFlipped, g.FlipRate = flips, float64(flips)/float64(max(1, looked))
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

func (f *generateFigures) rows() []row {
	var out []row
	for _, s := range f.Sizes {
		name := fmt.Sprintf("%s, %d × (%d + %d)", s.Size, s.Batch, s.Prompt, s.New)
		out = append(out, row{what: name + ": engine", value: fmt.Sprintf("%.0f tokens/s", s.TokensPerSecond)})
		if s.Ratio > 0 {
			out = append(out,
				row{what: name + ": transformers", value: fmt.Sprintf("%.0f tokens/s", s.Peer)},
				row{name + ": engine over transformers", fmt.Sprintf("%.2f ×", s.Ratio), "≥ 2 ×"})
		}
		out = append(out,
			row{
				name + ": |Δ log p| against Forward", fmt.Sprintf("mean %.2g, most %.2g", s.MeanDelta, s.MaxDelta),
				"mean ≤ 2e-2",
			},
			row{
				what:  name + ": |Δ entropy| against Forward",
				value: fmt.Sprintf("mean %.2g, most %.2g", s.MeanEntropyDelta, s.MaxEntropyDelta),
			},
			row{what: name + ": samples flipped by another batch",
				value: fmt.Sprintf("%.2g of tokens, %d of %d rows", s.FlipRate, s.RowsFlipped, s.Batch)})
	}
	return out
}
