package bench

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Case is a benchmark of the program internal/bench/cases.
type Case struct {
	Name, Doc string
	// New declares the case's flags and returns what measures once they are read.
	New func(flags *flag.FlagSet) func(ctx context.Context, r *Report) error
}

// Run measures a case, prints what it has found and writes it to a file. It fails if a goal is missed.
func (c Case) Run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	out := flags.String("out", filepath.Join(".ropewalk", "bench", c.Name+".json"), "file of the JSON result")
	measure := c.New(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	r := &Report{file: *out}
	err := measure(ctx, r)
	fmt.Print(r)
	return errors.Join(err, r.failed, r.Missed())
}

// Figure is a number that was measured, and what it has to be.
type Figure struct {
	Name  string   `json:"name"` // with its unit
	Value float64  `json:"value"`
	Least *float64 `json:"at_least,omitempty"`
	Most  *float64 `json:"at_most,omitempty"`
}

// Of returns a figure without a goal.
func Of(name string, value float64) Figure { return Figure{Name: name, Value: value} }

// AtLeast returns the figure with a goal.
func (f Figure) AtLeast(x float64) Figure { f.Least = &x; return f }

// AtMost returns the figure with a goal.
func (f Figure) AtMost(x float64) Figure { f.Most = &x; return f }

// goal says what the figure has to be and is not; "" if it is, or has no goal.
func (f Figure) goal() string {
	switch {
	case f.Least != nil && !(f.Value >= *f.Least): // also if it is no number
		return "at least " + digits(*f.Least)
	case f.Most != nil && !(f.Value <= *f.Most):
		return "at most " + digits(*f.Most)
	}
	return ""
}

// Row is what was measured of one thing.
type Row struct {
	What    string   `json:"what"`
	Figures []Figure `json:"figures,omitempty"`
	Note    string   `json:"note,omitempty"` // such as why it was not measured
}

// Report holds what a case has found. What is added is written to the file at once, because the next may take long.
type Report struct {
	Rows   []Row `json:"rows"`
	file   string
	failed error // to write the file
}

// Add adds the figures of one thing.
func (r *Report) Add(what string, figures ...Figure) { r.add(Row{What: what, Figures: figures}) }

// Note adds what is no figure.
func (r *Report) Note(what, format string, args ...any) {
	r.add(Row{What: what, Note: fmt.Sprintf(format, args...)})
}

func (r *Report) add(row Row) {
	r.Rows = append(r.Rows, row)
	if r.file != "" && r.failed == nil {
		r.failed = Write(r.file, r)
	}
}

// Missed is an error that names the goals that are missed.
func (r *Report) Missed() error {
	var all []error
	for _, row := range r.Rows {
		for _, f := range row.Figures {
			if want := f.goal(); want != "" {
				all = append(all, fmt.Errorf("goal missed: %s: %s is %s, want %s", row.What, f.Name, digits(f.Value),
					want))
			}
		}
	}
	return errors.Join(all...)
}

// digits writes a number with four digits, or all of a large one.
func digits(x float64) string {
	if math.Abs(x) >= 1000 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// String is a table of each sequence of rows whose figures have the same names. Figures that miss their goal have a
// mark.
func (r *Report) String() string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	head := ""
	for _, row := range r.Rows {
		var names, values []string
		for _, f := range row.Figures {
			value := digits(f.Value)
			if f.goal() != "" {
				value += " (want " + f.goal() + ")"
			}
			names, values = append(names, f.Name), append(values, value)
		}
		if row.Note != "" {
			values = append(values, row.Note)
		}
		if now := strings.Join(names, "\t"); now != head && now != "" {
			fmt.Fprintf(w, "\t%s\n", now)
			head = now
		}
		fmt.Fprintf(w, "%s\t%s\n", row.What, strings.Join(values, "\t"))
	}
	_ = w.Flush() // a bytes.Buffer returns no error
	return b.String()
}
