package chart

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// band fills the area between a series' low and high.
func (p plane) band(b *strings.Builder, s Series) {
	if s.Low == nil || s.Bars {
		return
	}
	var upper, lower []string
	for i, x := range s.X {
		if math.IsNaN(s.Low[i]) || math.IsNaN(s.High[i]) {
			continue
		}
		upper = append(upper, fmt.Sprintf("%.1f,%.1f", p.px(x), p.py(s.High[i])))
		lower = append(lower, fmt.Sprintf("%.1f,%.1f", p.px(x), p.py(s.Low[i])))
	}
	slices.Reverse(lower)
	if len(upper) == 1 { // a band over a single step has no width
		s.Bars = true
		p.bars(b, s)
		return
	}
	fmt.Fprintf(b, `<polygon class="band s%d" points="%s"/>`, s.Color, strings.Join(append(upper, lower...), " "))
}

func (p plane) series(b *strings.Builder, s Series) {
	if s.Bars {
		p.bars(b, s)
	}
	if !s.Points {
		p.line(b, s)
	}
	if s.Points || len(s.X) <= markedPoints {
		for i, x := range s.X {
			if !math.IsNaN(s.Y[i]) {
				fmt.Fprintf(b, `<circle class="dot s%d" cx="%.1f" cy="%.1f" r="%g"/>`, s.Color, p.px(x)+s.Shift,
					p.py(s.Y[i]),
					dotSize(s))
			}
		}
	}
}

func dotSize(s Series) float64 {
	if s.Points {
		return 3.2
	}
	return 2.2
}

// line draws the series, broken at gaps and where neighbours are too far apart.
func (p plane) line(b *strings.Builder, s Series) {
	var path strings.Builder
	pen, before := "M", 0.0
	for i, x := range s.X {
		if math.IsNaN(s.Y[i]) {
			pen = "M"
			continue
		}
		if s.Reach > 0 && x-before > s.Reach {
			pen = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", pen, p.px(x)+s.Shift, p.py(s.Y[i]))
		pen, before = "L", x
	}
	dashed := ""
	if s.Dashed {
		dashed = " dashed"
	}
	fmt.Fprintf(b, `<path class="line s%d%s" d="%s"/>`, s.Color, dashed, path.String())
}

func (p plane) bars(b *strings.Builder, s Series) {
	for i, x := range s.X {
		if math.IsNaN(s.Low[i]) || math.IsNaN(s.High[i]) {
			continue
		}
		px, low, high := p.px(x)+s.Shift, p.py(s.Low[i]), p.py(s.High[i])
		fmt.Fprintf(b, `<path class="bar s%d" d="M%.1f %.1fL%.1f %.1fM%.1f %.1fh6M%.1f %.1fh6"/>`, s.Color, px, low, px,
			high, px-3, low, px-3, high)
	}
}

// columns stacks series from 0 upwards.
func (p plane) columns(b *strings.Builder, stack []Series) {
	w := p.px(p.x0+p.spacing) - p.px(p.x0)
	if w > 4 {
		w *= 0.86 // a gap between neighbours
	}
	for i, x := range stackX(stack) {
		sum := 0.0
		for _, s := range stack {
			if math.IsNaN(s.Y[i]) || s.Y[i] <= 0 {
				continue
			}
			from, to := p.py(sum), p.py(sum+s.Y[i])
			fmt.Fprintf(b, `<rect class="column s%d" x="%.2f" y="%.2f" width="%.2f" height="%.2f"/>`, s.Color,
				p.px(x)-w/2, to, w, from-to)
			sum += s.Y[i]
		}
	}
}

// hover puts a transparent column over each x that shows the values there.
func (p plane) hover(b *strings.Builder, c Chart) {
	all := slices.Concat(c.Lines, c.Stack)
	var xs []float64
	for _, s := range all {
		xs = append(xs, s.X...)
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	stride := (len(xs) + hoverColumns - 1) / hoverColumns
	for i := 0; i < len(xs); i += max(stride, 1) {
		from, to := float64(left), float64(width-right)
		if i > 0 {
			from = (p.px(xs[i]) + p.px(xs[i-1])) / 2
		}
		if next := i + max(stride, 1); next < len(xs) {
			to = (p.px(xs[next]) + p.px(xs[next-1])) / 2
		}
		fmt.Fprintf(b, `<rect class="hover" x="%.1f" y="%d" width="%.1f" height="%d"><title>%s</title></rect>`,
			from, top, math.Max(to-from, 0), plotHeight, html.EscapeString(c.told(all, xs[i])))
	}
}

// told is the text that the chart shows at x.
func (c Chart) told(all []Series, x float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", c.XLabel, Value(x, Plain))
	for _, s := range all {
		i := slices.Index(s.X, x)
		if i < 0 || math.IsNaN(s.Y[i]) {
			continue
		}
		fmt.Fprintf(&b, "\n%s: %s", s.Name, Value(s.Y[i], c.Unit))
		if s.Low != nil && !math.IsNaN(s.Low[i]) {
			fmt.Fprintf(&b, " (%s to %s)", Value(s.Low[i], c.Unit), Value(s.High[i], c.Unit))
		}
	}
	return b.String()
}
