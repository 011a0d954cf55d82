package chart

import (
	"fmt"
	"html"
	"strings"
)

// Bar is one bar of a list of bars.
type Bar struct {
	Name  string
	Color int
	Value float64
	Note  string // after the value
}

const (
	barHeight, barGap = 24, 8
	nameWidth         = 190
	barRoom           = width - nameWidth - 120 // the rest is for the values
)

// Bars draws a list of bars from a common zero, each with its value.
func Bars(title string, bars []Bar) string {
	most := 0.0
	for _, bar := range bars {
		most = max(most, bar.Value)
	}
	h := len(bars) * (barHeight + barGap)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, h, html.EscapeString(title))
	for i, bar := range bars {
		y, w := i*(barHeight+barGap), 0.0
		if most > 0 {
			w = bar.Value / most * barRoom
		}
		fmt.Fprintf(&b, `<text class="name end" x="%d" y="%d">%s</text>`, nameWidth-8, y+16,
			html.EscapeString(bar.Name))
		fmt.Fprintf(&b, `<rect class="column s%d" x="%d" y="%d" width="%.1f" height="%d" rx="2"/>`, bar.Color,
			nameWidth, y, w, barHeight)
		fmt.Fprintf(&b, `<text class="name" x="%.1f" y="%d">%s</text>`, nameWidth+w+6, y+16,
			html.EscapeString(strings.TrimSpace(Value(bar.Value, Plain)+" "+bar.Note)))
	}
	b.WriteString("</svg>")
	return b.String()
}
