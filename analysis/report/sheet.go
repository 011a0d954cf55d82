package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
)

//go:embed assets/sheet.gohtml
var sheetText string

// Sheet is a page of figures and tables that another package gathers, in the form of the report's pages.
type Sheet struct {
	Kicker, Title, Sub string
	Tiles              []Tile
	Sections           []Section
	// Refresh is after how many seconds a browser loads the page again; 0: never.
	Refresh int
	Footer  string
}

// Drawn is a figure with a picture.
func Drawn(id, title, note string, c chart.Chart) Figure {
	f := Figure{ID: id, Title: title, Note: note}
	f.draw(c)
	return f
}

// Drawing returns a drawn figure of the page. An unknown id is an error that lists the page's drawings.
func (s *Sheet) Drawing(id string) (Figure, error) {
	var known []string
	for _, section := range s.Sections {
		for _, f := range section.Figures {
			if f.SVG == "" {
				continue
			}
			if f.ID == id {
				return f, nil
			}
			known = append(known, f.ID)
		}
	}
	return Figure{}, fmt.Errorf("no figure %q (there are: %s)", id, strings.Join(known, ", "))
}

// WriteSVG writes the drawing as an SVG file with its own style and legend.
func (f Figure) WriteSVG(w io.Writer) error {
	_, err := io.WriteString(w, chart.Document(f.SVG, figureStyle, f.Legend))
	return err
}

// WriteHTML writes the page.
func (s *Sheet) WriteHTML(w io.Writer) error { return writeTemplate(w, sheetText, sheetView{s}) }

// sheetView adds to the page what its template needs.
type sheetView struct{ *Sheet }

// Style is the page's style sheet.
func (sheetView) Style() template.CSS { return template.CSS(styleText) }
