// Package sandbox measures the sandbox together with the limit of its design and with its peers, in the same run, and
// compares the figures with goals for two cores. It runs from the repository's root and uses bin/ropewalk for
// everything that goes through the service.
//
// *The call* is a program that asks numpy for a sum, with numpy and sympy loaded. *The limit* is the same program in
// children forked by warm interpreters, without isolation or transport (sandbox/bench/limit.py), with the same
// interpreter, environment and warm-up. A *peer* is another way of running a program. Peers run print(1), their best
// case; bubblewrap keeps the program away from the host. A *round* measures all sides in turn, so that other load on
// the machine affects each of them. Figures are medians over rounds. *In flight* is how many calls run at any time.
// Latency is the time from submitting a call to its verdict. A *part* is a set of figures that are measured together.
// Every verdict is checked.
package sandbox

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// benchmark is what the parts share.
type benchmark struct {
	subject
	program     string
	round       time.Duration // time that each side has in a round
	rounds      int
	burst       int // calls
	good, loops int // calls: good ones, and endless loops among them
	report      *bench.Report
}

// part is a set of figures that are measured together.
type part struct {
	name    string
	measure func(*benchmark, context.Context) error
}

var parts = []part{{"speed", (*benchmark).speed}, {"latency", (*benchmark).latency},
	{"sessions", (*benchmark).sessions}, {"stuck", (*benchmark).stuck}, {"cold", (*benchmark).cold},
	{"burst", (*benchmark).burstThrough}, {"recovery", (*benchmark).recover}}

// Case measures the sandbox.
var Case = bench.Case{Name: "sandbox", Doc: "the sandbox next to the limit of its design and its peers", New: newCase}

func newCase(flags *flag.FlagSet) func(context.Context, *bench.Report) error {
	b := &benchmark{round: 3 * time.Second, burst: 45000, good: 10000, loops: 100}
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	flags.StringVar(&b.program, "program", filepath.Join("bin", "ropewalk"), "the command whose service is measured")
	only := flags.String("only", "", "parts to measure, separated by commas; default all")
	flags.IntVar(&b.rounds, "rounds", 5, "rounds")
	return func(ctx context.Context, r *bench.Report) error {
		if b.rounds < 1 {
			return fmt.Errorf("-rounds is %d, want 1 at least", b.rounds)
		}
		chosen, err := bench.Choose("part", *only, names)
		if err != nil {
			return fmt.Errorf("-only: %w", err)
		}
		if b.subject, err = openSubject(ctx); err != nil {
			return err
		}
		defer b.executor.Close()
		b.report = r
		_, version := b.executor.Python()
		r.Note("the call", "%s: tier %s, Python %s, %d workers", b.call.Code, b.executor.Isolation(), version,
			b.executor.Workers())
		return b.measure(ctx, chosen)
	}
}

// measure runs the chosen parts, or all. If a part fails the others continue.
func (b *benchmark) measure(ctx context.Context, chosen []string) error {
	var faults []error
	for _, p := range parts {
		if len(chosen) > 0 && !slices.Contains(chosen, p.name) {
			continue
		}
		fmt.Printf("measuring %s…\n", p.name)
		out, err := bench.RunPart(ctx, 0, func(ctx context.Context) error { return p.measure(b, ctx) })
		if out.Why != "" {
			b.report.Note(p.name+" was not measured", "%s", out.Why)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("measure %s: %w", p.name, err))
		}
	}
	return errors.Join(faults...)
}

// closeAfter closes c and keeps the first error.
func closeAfter(c io.Closer, err *error) {
	if closing := c.Close(); *err == nil {
		*err = closing
	}
}
