package chart

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Scatter is a drawing of points in a plane whose two axes have one scale and no meaning of their own.
type Scatter struct {
	Title  string
	Points []ScatterPoint
}

// ScatterPoint is one mark.
type ScatterPoint struct {
	X, Y  float64
	Color int
	Note  string
}

const scatterHeight = 360

// SVG draws the points.
func (s Scatter) SVG() string {
	low, high := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for _, p := range s.Points {
		for i, v := range [2]float64{p.X, p.Y} {
			low[i], high[i] = min(low[i], v), max(high[i], v)
		}
	}
	scale := math.Inf(1)
	for i, room := range [2]float64{width - 2*top, scatterHeight - 2*top} {
		if d := high[i] - low[i]; d > 0 {
			scale = min(scale, room/d)
		}
	}
	if math.IsInf(scale, 1) { // at most one place
		scale = 0
	}
	place := func(v float64, i int, size float64) float64 { return size/2 + (v-(low[i]+high[i])/2)*scale }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, scatterHeight,
		html.EscapeString(s.Title))
	for _, p := range s.Points {
		fmt.Fprintf(&b, `<circle class="dot s%d" cx="%.1f" cy="%.1f" r="2.5"><title>%s</title></circle>`, p.Color,
			place(p.X, 0, width), scatterHeight-place(p.Y, 1, scatterHeight), html.EscapeString(p.Note))
	}
	b.WriteString("</svg>")
	return b.String()
}
