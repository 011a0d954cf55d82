package compare

import (
	"fmt"
	"io"

	"github.com/ropewalk/ropewalk/internal/terminal"
)

// Write prints the comparison as text. Runs are called A, B, … in the order in which they were named.
func (c *Comparison) Write(w io.Writer) error {
	p := page{terminal.NewPrinter(w)}
	p.runs(c)
	p.recipe(c)
	p.made(c)
	p.divergences(c)
	p.evaluations(c)
	p.steps(c)
	return p.Close()
}

// page prints the text.
type page struct{ *terminal.Printer }

// Letter is what texts call a run.
func Letter(run int) string { return string(rune('A' + run)) }

func (p page) runs(c *Comparison) {
	for i, r := range c.Runs {
		p.Line("%s  %s", Letter(i), r.Run)
		p.Line("   %s, seed %d, %d of %d steps, %s", r.Recipe, r.Seed, r.StepsDone, max(r.Steps, r.StepsDone),
			r.State())
	}
}

// Lines fit into so many columns where their contents allow it; the names of parts take the first ones.
const textColumns, nameWidth = 80, 12

// absent stands for a value that is not there.
const absent = "–"

func (p page) recipe(c *Comparison) {
	p.Line("\nrecipe       %s", c.Recipe.words())
	head := []string{" ", "default"}
	for i := range c.Runs {
		head = append(head, Letter(i))
	}
	for i, f := range c.Recipe.Differ {
		if i == 0 {
			p.row(head)
		}
		p.row(f.Row())
	}
	for i := range c.Runs {
		if words := c.Recipe.Amended(i); words != "" {
			p.Line("  %s was changed %s", Letter(i), words)
		}
	}
}

// words counts the differences.
func (r Recipe) words() string {
	switch len(r.Differ) {
	case 0:
		return "equal"
	case 1:
		return fmt.Sprintf("1 of %d fields differs", r.Fields)
	}
	return fmt.Sprintf("%d of %d fields differ", len(r.Differ), r.Fields)
}

func (p page) made(c *Comparison) {
	var equal []string
	var differ [][]string
	for _, r := range c.Made {
		switch {
		case r.Name == "recipe": // shown above
		case r.Differ:
			differ = append(differ, append([]string{r.Name}, r.Values...))
		case r.Values[0] != "":
			equal = append(equal, r.Name+" "+Short(r.Values[0]))
		}
	}
	for i, text := range wrap(equal, textColumns-nameWidth-1) {
		name := "the same"
		if i > 0 {
			name = ""
		}
		p.Line("%-*s %s", nameWidth, name, text)
	}
	if len(differ) > 0 {
		p.Line("not the same")
	}
	for _, row := range differ {
		p.row(row)
	}
}

// wrap joins phrases with semicolons into lines of a width.
func wrap(phrases []string, width int) []string {
	var out []string
	for _, phrase := range phrases {
		if n := len(out); n > 0 && len(out[n-1])+2+len(phrase) <= width {
			out[n-1] += "; " + phrase
			continue
		}
		out = append(out, phrase)
	}
	return out
}

// row prints a row of a table.
func (p page) row(row []string) {
	cells := make([]any, len(row))
	for i, cell := range row {
		cells[i] = shown(cell)
	}
	cells[0] = "  " + shown(row[0])
	p.Row(cells...)
}

func shown(cell string) string {
	if cell == "" {
		return absent
	}
	return Short(cell)
}

func (p page) divergences(c *Comparison) {
	p.Line("")
	for i, d := range c.Divergences {
		name := "records"
		if i > 0 {
			name = ""
		}
		p.Line("%-*s %s", nameWidth, name, d.Words(i+1))
		if d.Divergence != nil {
			for _, text := range d.Divergence.Rows(i + 1) {
				p.Line("  %s", text)
			}
		}
	}
}
