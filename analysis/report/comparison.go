package report

import (
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/compare"
	"github.com/ropewalk/ropewalk/analysis/report/chart"
)

//go:embed assets/comparison.gohtml
var comparisonText string

// ComparisonPage shows several runs in the same figures.
type ComparisonPage struct {
	*compare.Comparison
	Tiles    []Tile
	Sections []Section
	LeftOut  []LeftOut
}

// GatherComparison reads what a page about several runs shows. The first one is the base.
func GatherComparison(ctx context.Context, record *analysis.Record, names []string) (*ComparisonPage, error) {
	c, err := compare.Read(ctx, record, names)
	if err != nil {
		return nil, err
	}
	runs := make([]data, len(names))
	for i, r := range c.Runs {
		runs[i] = data{run: r, questions: map[string]Question{}, answers: map[string]answer{}}
		if err := runs[i].ask(ctx, record, overlaid()); err != nil {
			return nil, err
		}
	}
	p := &ComparisonPage{Comparison: c, Tiles: differenceTiles(c)}
	all := []Section{differences(c)}
	for _, s := range overlays {
		all = append(all, s.render(runs))
	}
	p.LeftOut = emptyFigures(all)
	p.Sections = slices.DeleteFunc(all, func(s Section) bool { return len(s.Figures) == 0 })
	return p, nil
}

// WriteHTML writes the page.
func (p *ComparisonPage) WriteHTML(w io.Writer) error {
	return writeTemplate(w, comparisonText, comparisonView{p})
}

// comparisonView adds to the page what its template needs.
type comparisonView struct{ *ComparisonPage }

// Style is the page's style sheet.
func (comparisonView) Style() template.CSS { return template.CSS(styleText) }

// keyed is a run with its letter and colour.
type keyed struct {
	analysis.Run
	Letter string
	Color  int
}

// Legend names the runs with their colours, which are the same in every figure.
func (v comparisonView) Legend() []keyed {
	out := make([]keyed, len(v.Runs))
	for i, r := range v.Runs {
		out[i] = keyed{r, compare.Letter(i), runColor(i)}
	}
	return out
}

func runColor(run int) int { return 1 + run }

// differenceTiles shows how each run's last common evaluation differs from the base's.
func differenceTiles(c *compare.Comparison) []Tile {
	var out []Tile
	for i := range c.Runs[1:] {
		for _, e := range slices.Backward(c.Evaluations) {
			d := e.Against[i]
			if d == nil {
				continue
			}
			out = append(out, Tile{fmt.Sprintf("held-out success, %s − A (%s)", compare.Letter(i+1), e.Name),
				points(d.Mean) + " points", fmt.Sprintf("95%% interval: %s to %s; %s → %s",
					points(d.Low), points(d.High), chart.Value(d.Before, chart.Percent),
					chart.Value(d.After, chart.Percent))})
			break
		}
	}
	return append(out, Tile{"recipes", fmt.Sprint(len(c.Recipe.Differ)), fmt.Sprintf("of %d fields differ",
		c.Recipe.Fields)})
}
