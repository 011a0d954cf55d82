package chart

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Forest is a forest plot: differences with their intervals around a common zero.
type Forest struct {
	Title string // for screen readers
	Rows  []ForestRow
}

// ForestRow is one difference. Without an interval, Low and High are NaN.
type ForestRow struct {
	Name            string
	Color           int
	Mean, Low, High float64
	Note            string // at the end of the row
}

const (
	forestRow   = 26
	forestTop   = 6
	forestNotes = 150
	forestRoom  = width - nameWidth - forestNotes
)

// SVG draws the plot.
func (f Forest) SVG() string {
	most := 0.0
	for _, r := range f.Rows {
		for _, v := range []float64{r.Mean, r.Low, r.High} {
			if !math.IsNaN(v) {
				most = max(most, math.Abs(v))
			}
		}
	}
	if most == 0 {
		most = 1
	}
	at := func(v float64) float64 { return nameWidth + forestRoom/2 + v/most*forestRoom/2 }
	h := forestTop + len(f.Rows)*forestRow
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, h, html.EscapeString(f.Title))
	fmt.Fprintf(&b, `<path class="axis" d="M%.1f %d V%d"/>`, at(0), forestTop, h)
	for i, r := range f.Rows {
		y := float64(forestTop+i*forestRow) + forestRow/2
		fmt.Fprintf(&b, `<text class="name end" x="%d" y="%.1f">%s</text>`, nameWidth-8, y+4,
			html.EscapeString(r.Name))
		if !math.IsNaN(r.Low) && !math.IsNaN(r.High) {
			fmt.Fprintf(&b, `<path class="bar s%d" d="M%.1f %.1f H%.1f M%.1f %.1f v8 M%.1f %.1f v8"/>`, r.Color,
				at(r.Low), y, at(r.High), at(r.Low), y-4, at(r.High), y-4)
		}
		fmt.Fprintf(&b, `<circle class="dot s%d" cx="%.1f" cy="%.1f" r="4"/>`, r.Color, at(r.Mean), y)
		fmt.Fprintf(&b, `<text class="name" x="%d" y="%.1f">%s</text>`, width-forestNotes+8, y+4,
			html.EscapeString(r.Note))
	}
	b.WriteString("</svg>")
	return b.String()
}
