package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/evaluation"
)

func (p page) evaluations(c *Comparison) {
	if len(c.Evaluations) == 0 {
		p.Line("\nevaluation   no two runs were evaluated on the same problems")
		return
	}
	p.Line("\nsuccess on held-out problems; differences in percentage points, paired by problem")
	p.Line("evaluation    problems  runs      success           difference  95%% interval")
	for _, e := range c.Evaluations {
		name := e.Name
		for i, d := range e.Against {
			if d == nil {
				continue
			}
			p.difference(name, i+1, d.Difference)
			name = ""
			for _, part := range slices.Sorted(maps.Keys(d.ByPart)) {
				p.difference("  "+part, i+1, d.ByPart[part])
			}
		}
	}
}

// difference prints the difference of a run to the first one.
func (p page) difference(name string, run int, d evaluation.Difference) {
	p.Line("%-12s  %8d  A → %s  %5.1f%% → %5.1f%%  %10s  %s to %s", name, d.Problems, Letter(run), 100*d.Before,
		100*d.After, Points(d.Mean), Points(d.Low), Points(d.High))
}

// Points writes a difference of shares in percentage points.
func Points(x float64) string {
	if text := fmt.Sprintf("%+.1f", 100*x); text != "-0.0" {
		return text
	}
	return "+0.0"
}

// columnsShown are the figures that the text shows, with their widths.
var columnsShown = []struct {
	analysis.StepFigure
	width int
}{
	{analysis.StepFigureNamed("success"), 6}, {analysis.StepFigureNamed("reward"), 6},
	{analysis.StepFigureNamed("entropy"), 6}, {analysis.StepFigureNamed("kl"), 7},
	{analysis.StepFigureNamed("response_tokens"), 5},
}

// stepsShown bounds the steps that the text shows; JSON has all.
const stepsShown = 20

// steps prints the figures of the first two runs side by side; of more runs, the success and reward of each.
func (p page) steps(c *Comparison) {
	if len(c.Steps) == 0 {
		return
	}
	columns := columnsShown
	if len(c.Runs) > 2 {
		columns = columns[:max(1, 5-len(c.Runs))]
	}
	head, letters := "\nstep", "    "
	for _, col := range columns {
		width := (col.width + 1) * len(c.Runs)
		head += " " + center(col.Title, width)
		letters += " "
		for i := range c.Runs {
			letters += fmt.Sprintf(" %*s", col.width, Letter(i))
		}
	}
	p.Line("%s", strings.TrimRight(head, " "))
	p.Line("%s", letters)
	stride := (len(c.Steps) + stepsShown - 1) / stepsShown
	for i, s := range c.Steps {
		if i%stride != 0 && i != len(c.Steps)-1 {
			continue
		}
		text := fmt.Sprintf("%4d", s.Step)
		for _, col := range columns {
			text += " "
			for _, v := range s.Figures[col.Name] {
				text += fmt.Sprintf(" %*s", col.width, col.Text(v))
			}
		}
		p.Line("%s", text)
	}
	if stride > 1 {
		p.Line("every %dth step and the last one; --json has all steps and further figures", stride)
	}
}

func center(text string, width int) string {
	left := (width - len(text) + 1) / 2
	return strings.Repeat(" ", max(left, 0)) + text + strings.Repeat(" ", max(width-len(text)-left, 0))
}
