package view

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// closeupOf is a trajectory of one turn whose numbers are 1, 2, 3, … by token.
func closeupOf(t *testing.T, tokens *tokenizer.Tokenizer, context, response string) analysis.Closeup {
	t.Helper()
	ids := append(tokens.Encode(context), tokens.Encode(response)...)
	n := len(tokens.Encode(context))
	turn := schema.TurnRow{TokenIDs: ids, ContextTokens: int32(n), Response: response, Observation: context}
	var c analysis.Closeup
	for i := range ids {
		mask := int32(0)
		if i >= n {
			mask = 1
		}
		c.Tokens.Mask = append(c.Tokens.Mask, mask)
		c.Tokens.LogProbs = append(c.Tokens.LogProbs, -float32(i+1))
		c.Tokens.Entropies = append(c.Tokens.Entropies, float32(i+1))
		c.Tokens.OldLogProbs = append(c.Tokens.OldLogProbs, -float32(i+1)-0.5)
		c.Tokens.ReferenceLogProbs = append(c.Tokens.ReferenceLogProbs, -float32(i+1)-2)
		c.Tokens.Advantages = append(c.Tokens.Advantages, float32(mask)*0.75)
	}
	c.Turns = []schema.TurnRow{turn}
	return c
}

// Tokens that form one character are one piece with their joint numbers, and so is the context.
func TestPieces(t *testing.T) {
	tokens, err := rollout.NewTokenizer()
	require.NoError(t, err)
	c := closeupOf(t, tokens, "ab", "xé")
	require.Len(t, c.Tokens.Mask, 2+1+2, "é is two tokens")
	got := piecesOf(c, tokens)[0]
	require.Equal(t, []string{"ab", "x", "é"}, got.Text)
	require.Equal(t, []bool{false, true, true}, got.Written)
	require.Equal(t, []int32{0, 1, 1}, got.Mask)
	require.Equal(t, []float64{-3, -9}, got.LogProb[1:])
	require.Equal(t, []float64{3, 5}, got.Entropy[1:], "the greatest of its tokens")
	require.Equal(t, []float64{0, -0.5, -1}, got.Ratio)
	require.Equal(t, []float64{0, 2, 4}, got.Reference)
	require.Equal(t, []float64{0, 0.75, 0.75}, got.Advantage)
	require.Nil(t, got.Value)

	c.Tokens.OldLogProbs[2] = -100
	require.Equal(t, []float64{0, -loss.LogRatioClamp, -1}, piecesOf(c, tokens)[0].Ratio, "as losses bound it")

	c.Tokens.OldLogProbs, c.Tokens.Advantages = nil, nil
	got = piecesOf(c, tokens)[0]
	require.Nil(t, got.Ratio, "not recorded")
	require.Nil(t, got.Advantage)

	c.Turns[0].Response = "not what the tokens say"
	got = piecesOf(c, tokens)[0]
	require.Equal(t, []string{"ab", "not what the tokens say"}, got.Text)
	require.Equal(t, []int32{0, 1}, got.Mask)
	require.Nil(t, got.LogProb)
}
