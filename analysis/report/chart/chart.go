package chart

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Size and margins of the picture in its own units; the page scales it.
const (
	width, height            = 560, 250
	left, right, top, bottom = 54, 14, 10, 36
	plotWidth                = width - left - right
	plotHeight               = height - top - bottom
	hoverColumns             = 300  // at most: more would be narrower than a pointer
	markedPoints             = 40   // series of no more points show each as a dot
	xTicks, yTicks           = 9, 5 // about as many
	headroom, tinyY          = 0.05, 1e-12
	tinyShare                = 1e-6 // sums of shares may miss 100% by their rounding
)

// Unit says how values are written.
type Unit int

// The units.
const (
	Plain   Unit = iota
	Percent      // of 0…1
	Seconds
	Milliseconds
)

// Series is one row of values over x. NaN is a gap.
type Series struct {
	Name      string
	Color     int // the class s<Color>
	X, Y      []float64
	Low, High []float64 // of a band, or of error bars; nil for none
	Bars      bool      // Low and High are error bars, not a band
	Points    bool      // only dots, no line
	Dashed    bool
	Reach     float64 // the longest distance of neighbouring x that the line bridges; 0 = any
	Shift     float64 // moves marks sideways, in the picture's units, so that error bars at the same x are all visible
}

// Chart is a figure over a number that grows, such as the step.
type Chart struct {
	Title          string // for screen readers
	XLabel, YLabel string
	Unit           Unit
	Lines          []Series
	Stack          []Series // columns on top of each other, beneath the lines; all of the same X
	FromZero       bool     // the axis begins at 0
}

// SVG draws the chart.
func (c Chart) SVG() string {
	p := c.plane()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height, html.EscapeString(c.Title))
	p.grid(&b, c)
	p.columns(&b, c.Stack)
	for _, s := range c.Lines {
		p.band(&b, s)
	}
	for _, s := range c.Lines {
		p.series(&b, s)
	}
	p.hover(&b, c)
	b.WriteString("</svg>")
	return b.String()
}

// plane maps values to places in the picture.
type plane struct {
	x0, x1, y0, y1 float64
	unit           Unit
	spacing        float64 // the distance of neighbouring x, for columns
}

func (c Chart) plane() plane {
	p := plane{x0: math.Inf(1), x1: math.Inf(-1), y0: math.Inf(1), y1: math.Inf(-1), unit: c.Unit, spacing: 1}
	for _, s := range slices.Concat(c.Lines, c.Stack) {
		for _, x := range s.X {
			p.x0, p.x1 = math.Min(p.x0, x), math.Max(p.x1, x)
		}
	}
	for _, s := range c.Lines {
		for _, ys := range [][]float64{s.Y, s.Low, s.High} {
			for _, y := range ys {
				p.include(y)
			}
		}
	}
	for i := range stackX(c.Stack) {
		p.include(sumAt(c.Stack, i))
	}
	if c.FromZero || len(c.Stack) > 0 {
		p.include(0)
	}
	p.settle(len(c.Stack) > 0, spacing(stackX(c.Stack)), c)
	return p
}

func (p *plane) include(y float64) {
	if !math.IsNaN(y) && !math.IsInf(y, 0) {
		p.y0, p.y1 = math.Min(p.y0, y), math.Max(p.y1, y)
	}
}

// settle extends both axes to a positive length, with room above and ticks at their ends.
func (p *plane) settle(columns bool, spacing float64, c Chart) {
	if math.IsInf(p.x0, 0) {
		p.x0, p.x1 = 0, 1
	}
	if math.IsInf(p.y0, 0) {
		p.y0, p.y1 = 0, 1
	}
	if p.spacing = spacing; columns || p.x1 == p.x0 {
		p.x0, p.x1 = p.x0-spacing/2, p.x1+spacing/2
	}
	low, high := p.y0, p.y1
	if p.y1-p.y0 < tinyY {
		room := math.Max(math.Abs(p.y1)*headroom, tinyY)
		if p.y1 == 0 {
			room = 1
		}
		p.y1 += room
		if p.y0 != 0 || !c.FromZero {
			p.y0 -= room
		}
	}
	room := (p.y1 - p.y0) * headroom
	if p.y1 += room; p.y0 != 0 {
		p.y0 -= room
	}
	if c.Unit == Percent {
		p.keepToShares(low, high)
	}
}

// keepToShares cuts the room around shares off where there is nothing: below 0% and above 100%. Values outside, such as
// a negative explained variance, keep their room.
func (p *plane) keepToShares(low, high float64) {
	if low > -tinyShare {
		p.y0 = math.Max(p.y0, 0)
	}
	if high < 1+tinyShare {
		p.y1 = math.Min(p.y1, 1)
	}
}

func (p plane) px(x float64) float64 { return left + (x-p.x0)/(p.x1-p.x0)*plotWidth }
func (p plane) py(y float64) float64 { return top + (p.y1-y)/(p.y1-p.y0)*plotHeight }

// stackX returns the places of the columns: those of the first series, which all series share.
func stackX(stack []Series) []float64 {
	if len(stack) == 0 {
		return nil
	}
	return stack[0].X
}

func sumAt(stack []Series, i int) float64 {
	sum := 0.0
	for _, s := range stack {
		if !math.IsNaN(s.Y[i]) {
			sum += s.Y[i]
		}
	}
	return sum
}

// spacing returns the smallest distance of neighbouring x; 1 for fewer than two.
func spacing(xs []float64) float64 {
	out := math.Inf(1)
	for i := 1; i < len(xs); i++ {
		out = math.Min(out, xs[i]-xs[i-1])
	}
	if math.IsInf(out, 0) || out <= 0 {
		return 1
	}
	return out
}
