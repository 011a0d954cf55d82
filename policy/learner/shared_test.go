package learner

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
)

// sparing is a trainer that gives no outputs of shared tokens, as a trainer may.
type sparing struct {
	*bigram
	shared int
}

func (s *sparing) Forward(ctx context.Context, req policy.ForwardRequest) (policy.TokenOutputs, error) {
	if err := req.CheckShared(); err != nil {
		return policy.TokenOutputs{}, err
	}
	out, err := s.bigram.Forward(ctx, req)
	for i, n := range req.Shared {
		s.shared += n
		clear(out.LogProbs[i][:n])
		clear(out.Entropies[i][:n])
	}
	return out, err
}

// An update that shares prompts needs no output of theirs, and gives what another gives, in small micro-batches too.
func TestSharedPromptsChangeNothing(t *testing.T) {
	for _, limit := range []int{1 << 20, 30} {
		plain, spared := newBigram(vocab), &sparing{bigram: newBigram(vocab)}
		cfg := testConfig()
		cfg.MicrobatchTokens = limit
		want := mustUpdate(t, plain, testBatch(plain, 12, cfg.Temperature), cfg)
		cfg = testConfig()
		cfg.MicrobatchTokens, cfg.SharePrefixes = limit, true
		got, err := Update(context.Background(), spared, testBatch(spared.bigram, 12, cfg.Temperature), cfg, nil)
		require.NoError(t, err)
		require.Positive(t, spared.shared)
		require.Equal(t, want.Tokens, got.Tokens)
		require.InDelta(t, want.LogProbDrift, got.LogProbDrift, 1e-9)
		for i, u := range want.Updates {
			require.InDelta(t, u.Loss, got.Updates[i].Loss, 1e-6)
			require.InDelta(t, *u.Entropy, *got.Updates[i].Entropy, 1e-6)
		}
		for i, w := range plain.table {
			require.InDelta(t, w, spared.table[i], 1e-6, "logit %d", i)
		}
	}
}
