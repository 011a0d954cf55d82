package report

import (
	_ "embed"
	"html/template"
	"io"

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

// WriteHTML writes the page.
func (s *Sheet) WriteHTML(w io.Writer) error { return writeTemplate(w, sheetText, sheetView{s}) }

// sheetView adds to the page what its template needs.
type sheetView struct{ *Sheet }

// Style is the page's style sheet.
func (sheetView) Style() template.CSS { return template.CSS(styleText) }
