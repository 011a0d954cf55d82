package report

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
)

// mostPoints bounds the points of a series; in a longer run each point is the mean of several steps.
const mostPoints = 400

// thin reduces series to at most mostPoints points, each the mean of stride neighbouring steps.
func thin(all []chart.Series) (out []chart.Series, stride int) {
	longest := 0
	for _, s := range all {
		longest = max(longest, len(s.X))
	}
	if stride = (longest + mostPoints - 1) / mostPoints; stride <= 1 {
		return all, 1
	}
	for _, s := range all {
		if len(s.X) > mostPoints {
			s.X, s.Y, s.Low, s.High = means(s.X, stride), means(s.Y, stride), means(s.Low, stride),
				means(s.High, stride)
		}
		out = append(out, s)
	}
	return out, stride
}

// means returns the mean of each n neighbours without NaN. Nil stays nil.
func means(values []float64, n int) []float64 {
	var out []float64
	for from := 0; from < len(values); from += n {
		sum, count := 0.0, 0.0
		for _, v := range values[from:min(from+n, len(values))] {
			if !math.IsNaN(v) {
				sum, count = sum+v, count+1
			}
		}
		out = append(out, sum/count) // NaN of none
	}
	return out
}

// thinned reduces and draws a chart, and says so in the figure's note.
func thinned(c chart.Chart, f *Figure) {
	lines, stride := thin(c.Lines)
	stack, columns := thin(c.Stack)
	if stride = max(stride, columns); stride > 1 {
		f.Note += fmt.Sprintf(" Each point is the mean of %d steps.", stride)
	}
	c.Lines, c.Stack = lines, stack
	f.draw(c)
}
