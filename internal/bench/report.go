package bench

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
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
	dir, err := os.MkdirTemp("", "ropewalk-bench-")
	if err != nil {
		return err
	}
	r := &Report{Dir: dir, file: *out}
	err = measure(ctx, r)
	fmt.Print(r)
	return errors.Join(err, r.failed, r.Missed(), os.RemoveAll(dir))
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
	Rows   []Row  `json:"rows"`
	Dir    string `json:"-"` // a folder for the files of the case, which is removed after it
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

// The states of a part that has run.
const (
	StatusOK      = "ok"
	StatusFailed  = "failed"
	StatusSkipped = "skipped"
)

// Outcome is the end of a part.
type Outcome struct {
	Status  string  `json:"status"`
	Why     string  `json:"why,omitempty"` // it failed or was skipped
	Seconds float64 `json:"seconds"`
}

// String is one line about the outcome.
func (o Outcome) String() string {
	switch {
	case o.Status == StatusSkipped:
		return o.Status + ": " + o.Why
	case o.Why != "":
		return fmt.Sprintf("%s after %.0f s: %s", o.Status, o.Seconds, o.Why)
	}
	return fmt.Sprintf("%s, %.0f s", o.Status, o.Seconds)
}

// skipError says why something cannot be measured here.
type skipError struct{ why string }

// Error says why.
func (e skipError) Error() string { return e.why }

// Skip returns an error that says why something cannot be measured here. A part that ends with it has not failed.
func Skip(format string, args ...any) error { return skipError{fmt.Sprintf(format, args...)} }

// Skipped reports whether an error, or one that it wraps, was made by Skip.
func Skipped(err error) bool { return errors.As(err, new(skipError)) }

// RunPart runs a part within a time limit; 0 is no limit. The error is that of a part that failed, and nil for one that
// was skipped.
func RunPart(ctx context.Context, limit time.Duration, run func(context.Context) error) (Outcome, error) {
	bounded, cancel := context.WithCancel(ctx)
	if limit > 0 {
		bounded, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
	}
	defer cancel()
	began := time.Now()
	err := run(bounded)
	out := Outcome{Status: StatusOK, Seconds: time.Since(began).Seconds()}
	switch {
	case err == nil:
		return out, nil
	case Skipped(err):
		out.Status, out.Why = StatusSkipped, err.Error()
		return out, nil
	}
	if cause := context.Cause(bounded); cause != nil {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	out.Status, out.Why = StatusFailed, err.Error()
	return out, err
}

// Choose reads a flag's list of names, separated by commas, each of which must be one of those known. what is the word
// for one of them.
func Choose(what, text string, known []string) ([]string, error) {
	chosen := slices.DeleteFunc(strings.Split(text, ","), func(name string) bool { return name == "" })
	for _, name := range chosen {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no %s %q; there are %s", what, name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}
