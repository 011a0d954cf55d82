package report

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/schema"
)

func turnOf(ids []int32, context int, response string) schema.TurnRow {
	t := schema.TurnRow{TokenIDs: ids, ContextTokens: int32(context), Response: response,
		LogProbs: make([]float32, len(ids)), Entropies: make([]float32, len(ids))}
	for i := context; i < len(ids); i++ {
		t.LogProbs[i], t.Entropies[i] = -0.5, float32(i)
	}
	return t
}

// A character of several byte tokens is one piece; its log-probabilities add up.
func TestPiecesAreWholeCharacters(t *testing.T) {
	tokens, err := tokenizer.New([]string{"ab"})
	require.NoError(t, err)
	ids := tokens.Encode("qab÷é")
	got := pieceWriter{tokens: tokens, scale: 1}.turn(turnOf(ids, 1, "ab÷é"), nil)
	var texts []string
	for _, p := range got {
		texts = append(texts, p.Text)
	}
	require.Equal(t, []string{"q", "ab", "÷", "é"}, texts)
	require.False(t, got[0].Written)
	require.InDelta(t, -0.5, got[1].LogProb, 1e-9)
	require.InDelta(t, -1, got[2].LogProb, 1e-9)
	require.InDelta(t, 3, got[2].Entropy, 1e-9)
	require.True(t, math.IsNaN(got[1].Advantage))
}

// A response cut within a character shows a replacement, and loses nothing before it.
func TestPiecesCutWithinACharacter(t *testing.T) {
	tokens, err := tokenizer.New(nil)
	require.NoError(t, err)
	ids := append(tokens.Encode("a"), tokens.Encode("÷")[0])
	got := pieceWriter{tokens: tokens, scale: 1}.turn(turnOf(ids, 0, "a"), nil)
	require.Equal(t, "a", got[0].Text)
	require.Equal(t, "�", got[1].Text)
}

// Where the tokens are not those of the text, the text is shown.
func TestPiecesOfAnotherTokenizer(t *testing.T) {
	tokens, err := tokenizer.New(nil)
	require.NoError(t, err)
	turn := turnOf([]int32{900, 901}, 1, "forty-two")
	turn.Observation = "seen"
	for _, w := range []pieceWriter{{tokens: tokens, scale: 2}, {scale: 2}} {
		got := w.turn(turn, []float32{0, 1.5})
		require.Len(t, got, 2)
		require.Equal(t, "seen", got[0].Text)
		require.Equal(t, "forty-two", got[1].Text)
		require.InDelta(t, 1.5, got[1].Advantage, 1e-9)
		require.Equal(t, "w p8", w.span(got[1]).Class)
	}
}

func TestSpansOfPieces(t *testing.T) {
	w := pieceWriter{scale: 2}
	s := w.span(Piece{Text: "x", Written: true, LogProb: -4, Entropy: 0.5, Advantage: -2})
	require.Equal(t, "w l9 e5 n9", s.Class)
	require.Equal(t, "log-probability −4.000 (1.8%)\nentropy 0.500 nats\nadvantage × weight −2.000", s.Title)
	require.Equal(t, Span{Text: "x", Class: "c"}, w.span(Piece{Text: "x", LogProb: -4}))
	require.Equal(t, "w p0", pieceWriter{}.span(Piece{Written: true, LogProb: math.NaN(), Entropy: math.NaN()}).Class)
}

func TestLongRunsAreThinned(t *testing.T) {
	xs := make([]float64, 1000)
	for i := range xs {
		xs[i] = float64(i)
	}
	few := chart.Series{X: []float64{1, 2}, Y: []float64{3, 4}}
	got, stride := thin([]chart.Series{{X: xs, Y: xs}, few})
	require.Equal(t, 3, stride)
	require.Len(t, got[0].X, 334)
	require.InDelta(t, 1, got[0].Y[0], 1e-12)
	require.Nil(t, got[0].Low)
	require.Equal(t, few, got[1])
	require.Equal(t, []float64{2, 3}, means([]float64{1, math.NaN(), 3, 3}, 3)[:2])
}

func TestStagesWithoutAColourAreFolded(t *testing.T) {
	values := map[string][]float64{}
	var stages []string
	for i := range 10 {
		name := string(rune('a' + i))
		stages = append(stages, name)
		values[name] = []float64{float64(i), 1}
	}
	got := foldSmall(stages, values)
	require.Equal(t, []string{"d", "e", "f", "g", "h", "i", "j", others}, got)
	require.Equal(t, []float64{0 + 1 + 2, 3}, values[others])
}
