package policytest_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/policytest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// scripted is a whole sampler that does not train. Its model is a script: the next token depends on the last one. It
// gives log-probabilities and no entropies.
type scripted struct {
	vocab, positions int

	mu     sync.Mutex
	loaded string // digest of the published folder
	closed bool
}

// Load publishes a folder: its digest is all that this sampler needs of it.
func (s *scripted) Load(ctx context.Context, role policy.Role, dir string, _ bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return fmt.Errorf("load %s: %w", role, err)
	}
	if role != policy.RolePolicy {
		return fmt.Errorf("load %s: %w: this sampler holds the policy only", role, policy.ErrBadRequest)
	}
	c, err := checkpoint.Open(dir, false)
	if err != nil {
		return fmt.Errorf("load %s: %w", role, err)
	}
	defer c.Close()
	digest, err := checkpoint.Digest(dir)
	if err == nil {
		s.loaded = digest
	}
	return err
}

func (s *scripted) ready(ctx context.Context) error {
	if s.closed {
		return fmt.Errorf("%w: the sampler is closed", policy.ErrLost)
	}
	return ctx.Err()
}

// Generate draws each row from its own stream.
func (s *scripted) Generate(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out policy.Generated
	if err := s.ready(ctx); err != nil {
		return out, fmt.Errorf("generate: %w", err)
	}
	if req.Role != policy.RolePolicy || s.loaded == "" {
		return out, fmt.Errorf("generate: %w: %s", policy.ErrNotLoaded, req.Role)
	}
	if err := s.check(req); err != nil {
		return out, fmt.Errorf("generate: %w: %w", policy.ErrBadRequest, err)
	}
	for i, prefix := range req.Prefixes {
		rng, last := rand.New(rand.NewPCG(req.Streams[i], 1)), prefix[len(prefix)-1]
		var ids []int32
		var logProbs []float32
		finish := policy.FinishLength
		for len(ids) < req.MaxTokens[i] && finish == policy.FinishLength {
			id, logProb := s.next(last, req.Temperature, rng)
			ids, logProbs, last = append(ids, id), append(logProbs, float32(logProb)), id
			if slices.Contains(req.Stop, id) {
				finish = policy.FinishStop
			}
		}
		out.Tokens, out.LogProbs = append(out.Tokens, ids), append(out.LogProbs, logProbs)
		out.Finish = append(out.Finish, finish)
	}
	return out, nil
}

// next draws the token after last from softmax(sin(last + 2·token) / temperature).
func (s *scripted) next(last int32, temperature float64, rng *rand.Rand) (int32, float64) {
	logits, best := make([]float64, s.vocab), 0
	for v := range logits {
		logits[v] = math.Sin(float64(last) + 2*float64(v))
		if logits[v] > logits[best] {
			best = v
		}
	}
	if temperature == 0 {
		return int32(best), logits[best] - logSum(logits)
	}
	for v := range logits {
		logits[v] /= temperature
	}
	total, left := logSum(logits), rng.Float64()
	for v, x := range logits {
		if left -= math.Exp(x - total); left < 0 || v == s.vocab-1 {
			return int32(v), x - total
		}
	}
	return 0, 0 // not reached: the last token is taken
}

func logSum(logits []float64) float64 {
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(x)
	}
	return math.Log(sum)
}

func (s *scripted) check(req policy.GenerateRequest) error {
	if req.Truncation != (policy.Truncation{}) {
		return fmt.Errorf("%+v: it draws from all tokens", req.Truncation)
	}
	if err := req.Check(0); err != nil {
		return err
	}
	for i, prefix := range req.Prefixes {
		if len(prefix) == 0 || req.MaxTokens[i] < 1 || len(prefix)+req.MaxTokens[i] > s.positions {
			return fmt.Errorf("row %d has %d tokens and a budget of %d", i, len(prefix), req.MaxTokens[i])
		}
	}
	for _, ids := range append(slices.Clone(req.Prefixes), req.Stop) {
		for _, id := range ids {
			if id < 0 || int(id) >= s.vocab {
				return fmt.Errorf("token %d of a vocabulary of %d", id, s.vocab)
			}
		}
	}
	return nil
}

// Capabilities states what Generate does.
func (s *scripted) Capabilities() policy.Capabilities {
	return policy.Capabilities{TokenIDs: true, LogProbs: true, Temperature: true, RowSeeds: true, BatchInvariant: true,
		Weights: policy.WeightsLoad}
}

// State names the published folder.
func (s *scripted) State(ctx context.Context, role policy.Role) (policy.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil || role != policy.RolePolicy {
		return policy.State{}, err
	}
	return policy.State{Digest: s.loaded}, nil
}

// Describe names the sampler for the record.
func (s *scripted) Describe() policy.Description {
	return policy.Description{Device: "script", Threads: 1}
}

// Close implements policy.Sampler.
func (s *scripted) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// TestAddASampler holds a sampler that is no engine to the contract. CONTRIBUTING points here.
func TestAddASampler(t *testing.T) {
	shape := checkpoint.Shape{Vocab: 11, Hidden: 8, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 4, FFN: 8, Positions: 64,
		RopeTheta: 10000, NormEps: 1e-6, Pad: -1}
	dir := t.TempDir()
	require.NoError(t, checkpoint.Init(dir, shape, 1, map[string][]byte{"tokenizer.json": []byte("{}")}))
	policytest.Sampler(t, policytest.SamplerFixture{
		Open: func(testing.TB) policy.Sampler { return &scripted{vocab: shape.Vocab, positions: shape.Positions} },
		Dir:  dir, Vocab: shape.Vocab, Positions: shape.Positions, Digest: checkpoint.Digest,
	})
}
