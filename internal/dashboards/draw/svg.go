package main

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/internal/dashboards"
)

// Sizes of the page and of the parts of a panel.
const (
	columns              = 3
	panelWidth, gap      = 420, 16
	titleHeight          = 24
	chartWidth, chartTop = 420, 190
	keyHeight, mostKeys  = 15, 6
	panelHeight          = titleHeight + chartTop + mostKeys*keyHeight + gap
	headline             = 44
	longestKey           = 56 // letters
)

// style colours the marks of package chart.
const style = `text{font:12px sans-serif;fill:#333}.title{font-size:14px;font-weight:bold}.head{font-size:20px}
.tick,.label{font-size:13px}.end{text-anchor:end}.middle{text-anchor:middle}.grid{stroke:#e4e4e4}.axis{stroke:#999}
.line{fill:none;stroke-width:1.8}.dot,rect{stroke:none}
`

// hover matches the marks that show values under the pointer, which a still picture does without.
var hover = regexp.MustCompile(`(?s)<rect class="hover".*?</rect>`)

// colours of the lines, by the classes s0, s1, … of package chart.
var colours = []string{"#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#17becf", "#7f7f7f"}

// page draws panels side by side.
func page(title string, panels []panel) string {
	rows := (len(panels) + columns - 1) / columns
	width, height := columns*(panelWidth+gap)+gap, headline+rows*panelHeight
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d">`+"\n<style>%s", width,
		height, width, style)
	for i, colour := range colours {
		fmt.Fprintf(&b, ".line.s%d{stroke:%s}circle.s%d,rect.s%d{fill:%s}\n", i, colour, i, i, colour)
	}
	fmt.Fprintf(&b, "</style>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", width, height)
	fmt.Fprintf(&b, `<text class="head" x="%d" y="30">%s</text>`+"\n", gap, html.EscapeString(title))
	for i, p := range panels {
		x, y := gap+i%columns*(panelWidth+gap), headline+i/columns*panelHeight
		fmt.Fprintf(&b, "<g transform=\"translate(%d %d)\">%s</g>\n", x, y, p.svg())
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// svg draws one panel: its title, the lines over minutes, and their names with the latest values.
func (p panel) svg() string {
	unit, label, scale := p.scale()
	c := chart.Chart{Title: p.Title, XLabel: "minutes", YLabel: label, Unit: unit, FromZero: true}
	for i, l := range p.lines {
		s := chart.Series{Name: l.name, Color: i % len(colours)}
		for n := range l.x {
			s.X, s.Y = append(s.X, l.x[n]/time.Minute.Seconds()), append(s.Y, l.y[n]*scale)
		}
		c.Lines = append(c.Lines, s)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<text class="title" x="0" y="16">%s</text>`, html.EscapeString(p.Title))
	figure := strings.Replace(c.SVG(), "<svg ", fmt.Sprintf(`<svg y="%d" width="%d" height="%d" `, titleHeight,
		chartWidth, chartTop), 1)
	b.WriteString(hover.ReplaceAllString(figure, ""))
	for i, l := range p.lines[:min(len(p.lines), mostKeys)] {
		y := titleHeight + chartTop + (i+1)*keyHeight
		name := fmt.Sprintf("%s: %s", short(l.name), chart.Value(l.y[len(l.y)-1]*scale, unit))
		if i == mostKeys-1 && len(p.lines) > mostKeys {
			name = fmt.Sprintf("and %d more", len(p.lines)-i)
		}
		fmt.Fprintf(&b, `<rect class="s%d" x="0" y="%d" width="10" height="10"/><text x="16" y="%d">%s</text>`,
			i%len(colours), y-9, y, html.EscapeString(name))
	}
	return b.String()
}

// scale returns how the panel's values are written, and what they are multiplied by.
func (p panel) scale() (unit chart.Unit, label string, by float64) {
	switch p.Unit {
	case dashboards.Ratio:
		return chart.Percent, "", 1
	case dashboards.Seconds:
		return chart.Seconds, "s", 1
	case dashboards.Bytes:
		return chart.Plain, "MiB", 1.0 / (1 << 20)
	case dashboards.ByteRate:
		return chart.Plain, "MiB/s", 1.0 / (1 << 20)
	case dashboards.PerSecond:
		return chart.Plain, "1/s", 1
	}
	return chart.Plain, "", 1
}

func short(name string) string {
	if runes := []rune(name); len(runes) > longestKey {
		return string(runes[:longestKey-1]) + "…"
	}
	return name
}
