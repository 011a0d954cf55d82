package diff

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
)

//go:embed page.html
var pageText string

// pageTemplate escapes everything that it is given.
var pageTemplate = template.Must(template.New("page").Parse(pageText))

// The drawings' sizes, in their own units.
const (
	chartWidth, chartHeight = 560.0, 180.0
	plotSide                = 300.0
	pointsDrawn             = 3000
)

// page is what the template shows: texts and coordinates.
type page struct {
	Diff
	Notes   []string
	Figures []figure
	Bars    []bar
	Reasons []string // fates, kept first: rows and columns of the matrix
	Matrix  [][]int
	Points  []point
	Scale   string // the largest absolute advantage, for the plot's axes
}

type figure struct{ Name, Before, After string }

type bar struct {
	X, Y, Width, Height float64
	Label               string
	N                   int
}

type point struct{ X, Y float64 }

// WritePage writes the differences as one self-contained HTML page.
func (d Diff) WritePage(w io.Writer) error {
	p := page{Diff: d, Figures: d.figures(), Bars: bars(d.Rewards.Histogram)}
	for _, b := range d.Borrowed {
		p.Notes = append(p.Notes, b.words())
	}
	p.Reasons, p.Matrix = matrix(d.Selection.Fates)
	p.Points, p.Scale = points(d.Advantages.pairs)
	if err := pageTemplate.Execute(w, p); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

func (d Diff) figures() []figure {
	r, s, a := d.Rewards, d.Selection, d.Advantages
	number := func(x float64) string { return fmt.Sprintf("%.4f", shown(x)) }
	share := func(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }
	return []figure{
		{"mean reward", number(r.MeanBefore), number(r.MeanAfter)},
		{"success", share(r.SuccessBefore), share(r.SuccessAfter)},
		{"trajectories kept", fmt.Sprint(s.KeptBefore), fmt.Sprint(s.KeptAfter)},
		{"rows of the batch", fmt.Sprint(a.RowsBefore), fmt.Sprint(a.RowsAfter)},
		{"advantage, mean", number(a.MeanBefore), number(a.MeanAfter)},
		{"advantage, standard deviation", number(a.StdBefore), number(a.StdAfter)},
	}
}

// Correlates describes the correlation in words.
func (p page) Correlates() string { return p.Advantages.correlationWords() }

func bars(histogram []Bin) []bar {
	if len(histogram) < 2 {
		return nil // no reward changed
	}
	most := 1
	for _, b := range histogram {
		most = max(most, b.N)
	}
	width := chartWidth / float64(len(histogram))
	out := make([]bar, len(histogram))
	for i, b := range histogram {
		height := chartHeight * float64(b.N) / float64(most)
		out[i] = bar{
			X: float64(i)*width + 2, Y: chartHeight - height, Width: width - 4, Height: height, N: b.N,
			Label: fmt.Sprintf("%+.2f", (b.From+b.To)/2),
		}
	}
	return out
}

// matrix lays the fates out: rows before, columns after.
func matrix(fates []Fate) ([]string, [][]int) {
	names := []string{kept}
	for _, f := range fates {
		for _, name := range []string{f.Before, f.After} {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names[1:])
	cells := make([][]int, len(names))
	for i := range cells {
		cells[i] = make([]int, len(names))
	}
	for _, f := range fates {
		cells[slices.Index(names, f.Before)][slices.Index(names, f.After)] = f.N
	}
	return names, cells
}

// points places each pair in a square whose axes go from −most to most; of very many, some evenly.
func points(pairs [][2]float64) ([]point, string) {
	most := 0.0
	for _, p := range pairs {
		most = max(most, p[0], -p[0], p[1], -p[1])
	}
	if most == 0 {
		most = 1
	}
	stride := (len(pairs) + pointsDrawn - 1) / pointsDrawn
	var out []point
	for i := 0; i < len(pairs); i += max(stride, 1) {
		out = append(out, point{plotSide / 2 * (1 + pairs[i][0]/most), plotSide / 2 * (1 - pairs[i][1]/most)})
	}
	return out, fmt.Sprintf("%.3g", most)
}
