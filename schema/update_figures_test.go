package schema

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// advantaged returns the row of one optimiser step over tokens with these advantages.
func advantaged(source string, values ...float64) UpdateRow {
	out := UpdateRow{Tokens: int64(len(values)), AdvantageMin: new(math.Inf(1)), AdvantageMax: new(math.Inf(-1)),
		AdvantageZero: new(0.0), AdvantagePositive: new(0.0)}
	if source != "" {
		out.Source = &source
	}
	n, sum, squares := float64(len(values)), 0.0, 0.0
	for _, v := range values {
		sum, squares = sum+v, squares+v*v
		*out.AdvantageMin, *out.AdvantageMax = math.Min(*out.AdvantageMin, v), math.Max(*out.AdvantageMax, v)
		if v == 0 {
			*out.AdvantageZero += 1 / n
		}
		if v > 0 {
			*out.AdvantagePositive += 1 / n
		}
	}
	out.AdvantageMean, out.AdvantageStd = new(sum/n), new(math.Sqrt(squares/n-sum/n*sum/n))
	return out
}

func TestAdvantagesOfStepsAreThoseOfTheirTokens(t *testing.T) {
	rows := []UpdateRow{
		// the last before they were recorded
		advantaged(SourcePolicy, 2, -1, 0, 0), advantaged(SourcePolicy, 4), advantaged(SourceReplay, 100, 100),
		{Tokens: 50},
	}
	got := AdvantagesOf(rows)
	require.NotNil(t, got)
	// 2, −1, 0, 0, 4: mean 1, squares 21
	require.InDelta(t, 1, got.Mean, 1e-15)
	require.InDelta(t, math.Sqrt(21.0/5-1), got.Std, 1e-15)
	require.Equal(t, []float64{-1, 4}, []float64{got.Min, got.Max})
	require.InDelta(t, 0.4, got.Zero, 1e-15)
	require.InDelta(t, 0.4, got.Positive, 1e-15)

	require.Nil(t, AdvantagesOf(nil))
	require.Nil(t, AdvantagesOf([]UpdateRow{{Tokens: 5}}))
	require.Nil(t, AdvantagesOf([]UpdateRow{advantaged(SourceReplay, 1)}))
}

func TestCriticFiguresOf(t *testing.T) {
	rows := []UpdateRow{
		{Tokens: 1, ValueLoss: new(0.5), ExplainedVariance: new(0.25), ValueClipFraction: new(1.0), ValueMean: new(2.0),
			ReturnMean: new(3.0)},
		{Tokens: 3, ValueLoss: new(0.1), ValueClipFraction: new(0.0), ValueMean: new(6.0), ReturnMean: new(7.0)},
		{Tokens: 9, Source: new(SourceReplay)},
	}
	got := CriticFiguresOf(rows)
	require.NotNil(t, got)
	require.InDelta(t, 0.3, got.Loss, 1e-15)
	require.InDelta(t, 0.25, got.ClipFraction, 1e-15)
	require.InDelta(t, 5, got.Value, 1e-15)
	require.InDelta(t, 6, got.Return, 1e-15)
	require.InDelta(t, 0.25, *got.ExplainedVariance, 1e-15)
	rows[0].ExplainedVariance = nil
	require.Nil(t, CriticFiguresOf(rows).ExplainedVariance)
	require.Nil(t, CriticFiguresOf(rows[2:]))
}
