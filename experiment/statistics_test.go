package experiment

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The bounds follow from the quantiles t(0.975, 4) = 2.776445 and t(0.975, 1) = 12.706205.
func TestStudentsInterval(t *testing.T) {
	s := sampleOf([]float64{5, 3, 1, 4, 2})
	require.Equal(t, 5, s.N)
	require.InDelta(t, 3, s.Mean, 1e-12)
	require.InDelta(t, 1.581139, s.SD, 1e-6)
	require.InDelta(t, 1.036757, s.T.Low, 1e-6)
	require.InDelta(t, 4.963243, s.T.High, 1e-6)
	require.InDelta(t, 0.013237, *s.P, 1e-5)

	two := sampleOf([]float64{2, 4})
	require.InDelta(t, -9.706205, two.T.Low, 1e-6)
	require.InDelta(t, 0.204833, *two.P, 1e-5)
}

func TestSamplesWithoutSpread(t *testing.T) {
	require.Equal(t, sample{}, sampleOf(nil))
	require.Equal(t, sample{N: 1, Mean: 7}, sampleOf([]float64{7}))
	equal := sampleOf([]float64{0.1 + 0.2, 0.3, 0.3})
	require.Nil(t, equal.P, "a trace of rounding is no spread")
	require.Nil(t, equal.SeedsNeeded)
	require.InDelta(t, 0.3, equal.T.Low, 1e-9)
}

// The bootstrap interval depends on the values alone. Of two values a third of a quarter of the means are one of them.
func TestBootstrap(t *testing.T) {
	values := []float64{0.1, 0.5, 0.2, 0.9, 0.4}
	a, b := sampleOf(values), sampleOf([]float64{0.9, 0.4, 0.5, 0.2, 0.1})
	require.Equal(t, a, b)
	require.Less(t, a.Bootstrap.Low, a.Mean)
	require.Greater(t, a.Bootstrap.High, a.Mean)
	require.Greater(t, a.Bootstrap.Low, a.T.Low, "of few values it is the narrower one")
	require.Equal(t, interval{1, 3}, *sampleOf([]float64{1, 3}).Bootstrap)
}

// The least numbers with which the exact (noncentral) t test of one sample, two-sided at 0.05, has a power of 80%.
func TestSeedsNeeded(t *testing.T) {
	for effect, want := range map[float64]int{2: 5, 1: 10, 0.5: 34, 0.2: 199} {
		require.InDelta(t, want, *needed(effect), 1, effect)
	}
	require.Nil(t, needed(0.001))
}

// In order: 4 × 0.005, 3 × 0.01, 2 × 0.03, and 1 × 0.04, which the one before it raises to 0.06.
func TestHolm(t *testing.T) {
	p := []*float64{new(0.01), nil, new(0.04), new(0.03), new(0.005)}
	got := holm(p)
	require.Nil(t, got[1])
	for i, want := range map[int]float64{0: 0.03, 2: 0.06, 3: 0.06, 4: 0.02} {
		require.InDelta(t, want, *got[i], 1e-12)
	}
	require.InDelta(t, 1, *holm([]*float64{new(0.8), new(0.9)})[0], 1e-12)
}
