package chart

import (
	"fmt"
	"html"
	"strings"
)

// Key explains one series' mark.
type Key struct {
	Name  string
	Color int
	Mark  string // line, dashed, dot, column
}

// Legend explains the series of a chart; nil for a single line, which the axis names.
func (c Chart) Legend() []Key {
	if len(c.Lines) < 2 && len(c.Stack) == 0 {
		return nil
	}
	var out []Key
	for _, s := range c.Lines {
		mark := "line"
		switch {
		case s.Points:
			mark = "dot"
		case s.Dashed:
			mark = "dashed"
		}
		out = append(out, Key{s.Name, s.Color, mark})
	}
	for _, s := range c.Stack {
		out = append(out, Key{s.Name, s.Color, "column"})
	}
	return out
}

const (
	legendColumns = 3
	legendRow     = 16
	legendMark    = 16
)

// Document makes an SVG file of a drawing of this package: with a style sheet, on white, and with the legend above.
func Document(drawing, style string, legend []Key) string {
	var w, h int
	if _, err := fmt.Sscanf(drawing, `<svg viewBox="0 0 %d %d"`, &w, &h); err != nil {
		panic(err) // all drawings of this package begin so
	}
	above := (len(legend) + legendColumns - 1) / legendColumns * legendRow
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d">`, w, h+above)
	fmt.Fprintf(&b, "<style>\n%s</style>", style)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`, w, h+above)
	for i, k := range legend {
		x, y := left+i%legendColumns*(w-left)/legendColumns, i/legendColumns*legendRow+legendRow/2
		fmt.Fprintf(&b, `<path class="line %s s%d" d="M%d %d h%d"/>`, k.Mark, k.Color, x, y, legendMark)
		fmt.Fprintf(&b, `<text class="label" x="%d" y="%d">%s</text>`, x+legendMark+6, y+4, html.EscapeString(k.Name))
	}
	fmt.Fprintf(&b, `<svg y="%d" width="%d" height="%d" %s</svg>`+"\n", above, w, h,
		strings.TrimPrefix(drawing, "<svg "))
	return b.String()
}
