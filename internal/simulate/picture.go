package simulate

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// The picture's measures, in its own units.
const (
	pictureWidth = 960
	margin       = 64 // left of the engines
	levels       = 8  // shades of rows in flight
	tallest      = 14 // of an engine's line
	panelHeight  = 420
)

// style colours the picture in light and in dark mode.
const style = `<style>text{font:12px ` +
	`system-ui,sans-serif;fill:#333}.quiet{fill:#777}.idle{fill:#f0f0f0}.prefill{fill:#d9822b}` +
	`.mark{stroke:#b00020;stroke-dasharray:3 3}.n{fill:#1f6fb2}` +
	`@media(prefers-color-scheme:dark){text{fill:#ddd}.quiet{fill:#999}.idle{fill:#2a2a2a}.n{fill:#58a6e8}` +
	`svg{background:#181818}}</style>`

// WriteSVG draws what every engine does over time, one line for each: the darker, the more turns it decodes; orange
// where it computes prefixes for most of the time. Static allocation is below, on the same time scale.
func (c *Comparison) WriteSVG(w io.Writer) error {
	panels := []panel{{"the scheduler", &c.Dynamic}}
	if c.Static != nil {
		panels = append(panels, panel{"static allocation", c.Static},
			panel{"static allocation whose calls wait for no one", c.Asynchronous})
	}
	line := min(float64(panelHeight)/float64(c.Engines), tallest)
	height, longest := line*float64(c.Engines)+44, 0.0
	for _, p := range panels {
		longest = max(longest, p.result.Makespan)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" role="img" aria-label="%s">%s`,
		pictureWidth, height*float64(len(panels))+34, html.EscapeString(c.Workload+": engines over time"), style)
	fmt.Fprintf(&b, `<text x="%d" y="18">%s: %d rollouts on %d engines; the bound is %.0f s</text>`, margin,
		html.EscapeString(c.Workload), c.Rollouts, c.Engines, c.Bound.Seconds())
	most := c.mostRows(panels)
	for i, p := range panels {
		p.draw(&b, 28+height*float64(i), line, longest, most, c.Bound.Seconds())
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// panel is one simulation in the picture.
type panel struct {
	title  string
	result *Result
}

// mostRows is the greatest mean number of rows in any stretch of time, which has the darkest shade.
func (c *Comparison) mostRows(panels []panel) float64 {
	most := 1e-9
	for _, p := range panels {
		for _, line := range p.result.usage.rows {
			for _, x := range line {
				most = max(most, x/p.result.usage.width)
			}
		}
	}
	return most
}

// draw draws one panel. Neighbouring stretches of time with the same shade are one rectangle.
func (p panel) draw(b *strings.Builder, top, line, longest, most, bound float64) {
	u := p.result.usage
	scale := (pictureWidth - margin - 8) / longest
	fmt.Fprintf(b, `<text x="%d" y="%.1f">%s: %.0f s, idle %.0f%%, %d evictions</text>`, margin, top+12,
		html.EscapeString(p.title), p.result.Makespan, 100*p.result.Idle, p.result.Evictions)
	top += 18
	fmt.Fprintf(b, `<rect class="idle" x="%d" y="%.1f" width="%.1f" height="%.1f"/>`, margin, top,
		p.result.Makespan*scale, line*float64(len(u.rows)))
	for e := range u.rows {
		y := top + line*float64(e)
		if e == 0 || e == len(u.rows)-1 {
			fmt.Fprintf(
				b,
				`<text class="quiet" x="%d" y="%.1f" text-anchor="end">engine %d</text>`,
				margin-4,
				y+line/2+4,
				e,
			)
		}
		for from := 0; from < bins; {
			shade, to := u.shade(e, from, most), from+1
			for to < bins && u.shade(e, to, most) == shade {
				to++
			}
			if shade != "" {
				fmt.Fprintf(b, `<rect %s x="%.1f" y="%.2f" width="%.1f" height="%.2f"/>`, shade,
					margin+float64(from)*u.width*scale, y, float64(to-from)*u.width*scale, line*0.94)
			}
			from = to
		}
	}
	x := margin + bound*scale
	fmt.Fprintf(b, `<line class="mark" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x, top, x,
		top+line*float64(len(u.rows)))
}

// shade is how a stretch of an engine's time is drawn; empty where it is idle.
func (u *usage) shade(engine, bin int, most float64) string {
	rows, prefill := u.rows[engine][bin]/u.width, u.prefill[engine][bin]/u.width
	switch {
	case prefill > 0.5:
		return `class="prefill"`
	case rows <= 0:
		return ""
	}
	level := min(int(rows/most*levels), levels-1)
	return fmt.Sprintf(`class="n" fill-opacity="%.2f"`, 0.15+0.85*float64(level)/(levels-1))
}
