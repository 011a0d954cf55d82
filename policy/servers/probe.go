package servers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// ScoreWith returns the policy.Score of engines that open opens, one for each call: the models that a worker's engines
// hold stay resident.
func ScoreWith(open func() (policy.Engine, error)) policy.Score {
	return func(ctx context.Context, dir string, ids []int32) (_ []float32, err error) {
		e, err := open()
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, e.Close()) }()
		if err := e.Load(ctx, policy.RolePolicy, dir, false); err != nil {
			return nil, err
		}
		out, err := e.Forward(ctx, policy.ForwardRequest{Role: policy.RolePolicy, Sequences: [][]int32{ids},
			Temperature: 1, Outputs: policy.OutLogProb})
		if err != nil {
			return nil, err
		}
		return out.LogProbs[0][1:], nil
	}
}

// probeTokens is the length of the probe. Every matrix of a model takes part in its log-probabilities.
const probeTokens = 16

// probeOf returns the probe for a model: the same tokens for the same vocabulary.
func probeOf(s checkpoint.Shape) []int32 {
	rng := rand.New(rand.NewPCG(uint64(s.Vocab), 0x70726f6265))
	out := make([]int32, min(probeTokens, s.Positions))
	for i := range out {
		out[i] = rng.Int32N(int32(s.Vocab))
	}
	return out
}

// nearerBy is how many times nearer a server's values must be to those of the version before to be called old, and
// noise the difference below which two versions count as equal.
const (
	nearerBy = 4
	noise    = 2e-5
)

// verify compares what a server says about the probe with our own forward pass: over the version that it should have,
// and over the one before, if it is known.
func (l *link) verify(ctx context.Context, d dialect, v version, probe []int32, expected, before []float32) error {
	got, err := d.score(ctx, probe)
	if err != nil {
		return fmt.Errorf("score the probe: %w", err)
	}
	if got == nil { // a server of text
		return nil
	}
	if err := l.checkNumbers("log-probability", got, len(expected), math.Inf(-1), 0); err != nil {
		return fmt.Errorf("score the probe: %w", err)
	}
	return l.compare(v, got, expected, before)
}

// compare returns a Mismatch if a server's values are not those that are expected of a version, or are those from
// before; nil = those are unknown.
func (l *link) compare(v version, got, expected, before []float32) error {
	m := &Mismatch{Server: l.Name(), Digest: v.digest, Expected: expected, Got: got, Tolerance: l.Tolerance,
		Remedy: remedies[l.Kind]}
	m.Mean, m.Max = differences(got, expected)
	if before != nil && m.Mean > noise {
		old, _ := differences(got, before)
		m.Old = old*nearerBy < m.Mean
	}
	if m.Mean > l.Tolerance || m.Old {
		return m
	}
	return nil
}

// drawer is a dialect whose servers score no given tokens. What they say about tokens of their own is compared.
type drawer interface {
	// drawn returns so many tokens that the server draws after the probe at temperature 1.
	drawn(ctx context.Context, probe []int32, tokens int) (response, error)
}

// compareDraws is verify for servers that score no given tokens.
func (s *Sampler) compareDraws(ctx context.Context, to *server, d drawer, v version, next loaded) error {
	n := min(probeTokens, to.known.Positions-len(next.probe), next.shape.Positions-len(next.probe))
	if n < 1 {
		return nil
	}
	r := row{prefix: next.probe, maxTokens: n}
	out, err := d.drawn(ctx, next.probe, n)
	if err == nil {
		err = to.checkResponse(next.shape.Vocab, r, &out)
	}
	if err != nil {
		return fmt.Errorf("draw tokens after the probe: %w", err)
	}
	ours, err := s.o.Score(ctx, v.folder, slices.Concat(next.probe, out.tokens))
	if err != nil {
		return fmt.Errorf("compute our own log-probabilities of what it has drawn: %w", err)
	}
	return to.compare(v, out.logProbs, ours[len(next.probe)-1:], nil)
}

// remedies say what is usually wrong where a server's values are not those of its weights.
var remedies = map[string]string{
	KindVLLM: "vLLM reloads no output head that it shares with the embedding: start it from a folder with " +
		"tie_word_embeddings false (export --checkpoint writes one with --untied), or raise tolerance if it computes " +
		"in bfloat16",
	KindSGLang: "start it from a model of the same shape, or raise tolerance if it computes in bfloat16",
	KindLlama: "start llama-server with --cache-type-k f32 --cache-type-v f32 -fa off, or raise tolerance; its " +
		"folder must be that of --models-dir",
	KindRopewalk: "start it from a model of the same shape",
	KindTensorRT: "it serves another model; start trtllm-serve with this one, or raise tolerance if it computes in " +
		"bfloat16 or less",
}

// differences returns the mean and the greatest absolute difference of two lists of the same length.
func differences(a, b []float32) (mean, most float64) {
	for i := range a {
		d := apart(a[i], b[i])
		mean += d / float64(len(a))
		most = max(most, d)
	}
	return mean, most
}

func apart(a, b float32) float64 { return math.Abs(float64(a) - float64(b)) }
