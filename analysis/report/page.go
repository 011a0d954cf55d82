package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/report/chart"
)

//go:embed assets/page.gohtml
var pageText string

//go:embed assets/figures.gohtml
var figuresText string

//go:embed assets/style.css
var pageStyle string

//go:embed assets/figure.css
var figureStyle string

// styleText is the style sheet of a page with figures.
var styleText = figureStyle + pageStyle

//go:embed assets/script.js
var scriptText string

// Page is all that the report shows.
type Page struct {
	Run        analysis.Run
	Generation analysis.Generation
	Tiles      []Tile
	Sections   []Section
	LeftOut    []LeftOut // figures that there are no data for
	Samples    []Sample

	shown shown // how the samples can be coloured
}

// WriteHTML writes the page.
func (p *Page) WriteHTML(w io.Writer) error { return writeTemplate(w, pageText, view{p}) }

// writeTemplate fills a page's template in, which may use those of the figures.
func writeTemplate(w io.Writer, text string, values any) error {
	t, err := template.New("page").Parse(text)
	if err == nil {
		t, err = t.Parse(figuresText)
	}
	if err != nil {
		return fmt.Errorf("parse the report's template: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, values); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	_, err = w.Write(out.Bytes())
	return err
}

// view adds to the page what its template needs. The assets are this package's own, and so are
// drawings, which escape their texts; everything else is text that the template escapes.
type view struct{ *Page }

// Style is the page's style sheet.
func (view) Style() template.CSS { return template.CSS(styleText) }

// Script is the page's one script.
func (view) Script() template.JS { return template.JS(scriptText) }

// Policy lets the browser run that script, apply the style, and load nothing.
func (view) Policy() string {
	sum := sha256.Sum256([]byte(scriptText))
	return "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Shades are the numbers of the shades of a colour, lightest first.
func (view) Shades() []int { return countUp(shades) }

// Unshades are the same numbers, darkest first.
func (view) Unshades() []int {
	out := countUp(shades)
	for i := range out {
		out[i] = shades - i
	}
	return out
}

func countUp(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i + 1
	}
	return out
}

// AdvantageScale is the weighted advantage that has the darkest colour.
func (v view) AdvantageScale() string { return chart.Value(v.shown.advantage, chart.Plain) }

// Colour is the quantity that colours the tokens when the page opens.
func (v view) Colour() string { return v.shown.colour() }

// Colourless says why tokens have no colours; it is empty where they have.
func (v view) Colourless() string {
	if v.shown.logProbs {
		return ""
	}
	return "The trajectories have neither log-probabilities nor entropies: they were imported."
}

// GenerationNote names the generation that the figures show, unless it is the one that the heads name.
func (v view) GenerationNote() string {
	if n, numbered := v.Generation.Number(); numbered {
		return fmt.Sprintf("generation %d of the stages that have one", n)
	}
	return ""
}

// GenerationFlag is the flag for `ropewalk sql` that repeats the figures' queries on the same generation.
func (v view) GenerationFlag() string {
	if v.Generation == analysis.Heads {
		return ""
	}
	return " --gen " + v.Generation.String()
}

// HasReplays reports whether the page has a section of replays.
func (v view) HasReplays() bool {
	return slices.ContainsFunc(v.Sections, func(s Section) bool { return s.ID == replaysID })
}

// Drawing is the figure's picture, which the chart package has escaped.
func (f Figure) Drawing() template.HTML { return template.HTML(f.SVG) }
