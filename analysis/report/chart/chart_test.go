package chart

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		whole     bool
		want      []float64
	}{
		{0, 1, false, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{0, 0.9, false, []float64{0, 0.2, 0.4, 0.6, 0.8}},
		{-3, 7, false, []float64{-2, 0, 2, 4, 6}},
		{0, 98, true, []float64{0, 20, 40, 60, 80}},
		{1, 3, true, []float64{1, 2, 3}},
		{0.5, 1.5, true, []float64{1}},
	} {
		got, step := ticks(c.low, c.high, 5, c.whole)
		require.InDeltaSlice(t, c.want, got, 1e-9, "%g to %g", c.low, c.high)
		require.Positive(t, step)
	}
}

func TestNumbersAreWritten(t *testing.T) {
	require.Equal(t, []string{"0.20", "−0.05", "20%", "1.5e−4", "12k", "0", "0"}, []string{
		tick(0.2, 0.05, Plain), tick(-0.05, 0.05, Plain), tick(0.2, 0.1, Percent), tick(0.00015, 0.00005, Plain),
		tick(12_000, 2000, Plain), tick(math.Copysign(0, -1), 1, Plain),
		tick(0, 0.0005, Plain),
	})
	require.Equal(t, []string{"–", "12.3%", "1.50 s", "0.4 ms", "1152", "0.123", "−2"}, []string{
		Value(math.NaN(), Percent), Value(0.1234, Percent), Value(1.5, Seconds), Value(0.42, Milliseconds),
		Value(1152, Plain), Value(0.12345, Plain), Value(-2, Plain),
	})
}

// Gaps break a line, and nothing is ever drawn at NaN.
func TestGaps(t *testing.T) {
	nan := math.NaN()
	svg := Chart{Title: "t", Lines: []Series{{Name: "a", Color: 1, X: []float64{1, 2, 3, 4}, Y: []float64{1, nan, 2, 3},
		Low: []float64{0, nan, 1, 1}, High: []float64{2, nan, 3, 4}}}}.SVG()
	require.Equal(t, 3, strings.Count(svg, `class="dot s1"`))
	require.Regexp(t, `class="line s1" d="M[0-9. ]+M[0-9. ]+L[0-9. ]+"`, svg)
	require.NotContains(t, svg, "NaN")
	require.NotContains(t, Chart{Lines: []Series{{X: []float64{1}, Y: []float64{nan}}}}.SVG(), "NaN")
	require.NotContains(t, Chart{}.SVG(), "NaN")
	require.NotContains(t, Chart{}.SVG(), "Inf")
}

// A line does not join points that are farther apart than its reach.
func TestLinesEndBeforeLongGaps(t *testing.T) {
	line := Series{Color: 1, X: []float64{0, 10, 95, 105}, Y: []float64{1, 2, 3, 4}}
	require.Regexp(t, `d="M[0-9. ]+L[0-9. ]+L[0-9. ]+L[0-9. ]+"`, Chart{Lines: []Series{line}}.SVG())
	line.Reach = 20
	svg := Chart{Lines: []Series{line}}.SVG()
	require.Regexp(t, `d="M[0-9. ]+L[0-9. ]+M[0-9. ]+L[0-9. ]+"`, svg)
	require.Equal(t, 4, strings.Count(svg, `class="dot s1"`), "each point is drawn")
}

// An axis of shares shows nothing below 0% and above 100%, whatever the shares are.
func TestAxesOfSharesStayBetween0And100Percent(t *testing.T) {
	for name, c := range map[string]struct {
		chart  Chart
		y0, y1 float64
	}{
		"low and high": {Chart{Lines: []Series{{X: []float64{1, 2}, Y: []float64{0.01, 0.99}}}}, 0, 1},
		"all 0":        {Chart{Lines: []Series{{X: []float64{1, 2}, Y: []float64{0, 0}}}}, 0, 1},
		"all 1":        {Chart{Lines: []Series{{X: []float64{1, 2}, Y: []float64{1, 1}}}}, 0.95 - 0.05*0.1, 1},
		"wide interval": {Chart{Lines: []Series{{X: []float64{1}, Y: []float64{0.5}, Low: []float64{0},
			High: []float64{1}}}}, 0, 1},
		"a rounded sum": {Chart{Stack: []Series{{X: []float64{1}, Y: []float64{0.7}},
			{X: []float64{1}, Y: []float64{0.3000000001}}}}, 0, 1},
	} {
		c.chart.Unit = Percent
		p := c.chart.plane()
		require.InDelta(t, c.y0, p.y0, 1e-9, name)
		require.InDelta(t, c.y1, p.y1, 1e-9, name)
	}
	negative := Chart{Unit: Percent, Lines: []Series{{X: []float64{1, 2}, Y: []float64{-0.5, 0.5}}}}.plane()
	require.Less(t, negative.y0, -0.5, "an explained variance may be negative")
}

func TestColumnsStandOnEachOther(t *testing.T) {
	p := Chart{Stack: []Series{{Color: 1, X: []float64{1, 2}, Y: []float64{1, 3}},
		{Color: 2, X: []float64{1, 2}, Y: []float64{2, 0}}}}.plane()
	require.Zero(t, p.y0)
	require.Greater(t, p.y1, 3.0)
	require.Less(t, p.px(2.5), float64(width-right)+1e-9)
	var b strings.Builder
	p.columns(&b, []Series{{Color: 1, X: []float64{1, 2}, Y: []float64{1, 3}},
		{Color: 2, X: []float64{1, 2}, Y: []float64{2, 0}}})
	require.Equal(t, 3, strings.Count(b.String(), "<rect"), "a column of nothing is not drawn")
}

func TestTextIsEscaped(t *testing.T) {
	const evil = `</svg><script>"&`
	line := Series{Name: evil, X: []float64{1, 2}, Y: []float64{1, 2}}
	for _, svg := range []string{Chart{Title: evil, XLabel: evil, YLabel: evil, Lines: []Series{line, line}}.SVG(),
		Bars(evil, []Bar{{Name: evil, Value: 1, Note: evil}})} {
		require.Equal(t, 1, strings.Count(svg, "</svg>"))
		require.NotContains(t, svg, "<script")
	}
}

func TestLegend(t *testing.T) {
	one := Series{Name: "a", Color: 1}
	require.Nil(t, Chart{Lines: []Series{one}}.Legend())
	require.Equal(t, []Key{{"a", 1, "line"}, {"b", 2, "dot"}, {"c", 3, "column"}}, Chart{
		Lines: []Series{one, {Name: "b", Color: 2, Points: true}}, Stack: []Series{{Name: "c", Color: 3}},
	}.Legend())
}
