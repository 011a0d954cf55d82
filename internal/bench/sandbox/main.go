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
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
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

// batchSize is how many calls are submitted at once when throughput is measured.
const batchSize = 64

// subject is the sandbox that is measured, in this process, and the call.
type subject struct {
	executor *zygote.Executor
	python   string // the executor's interpreter; "" if the executor finds one
	call     sandbox.Call
	output   string
}

// theCall needs numpy and sympy.
var theCall = sandbox.Call{Code: "import numpy as np; print(int(np.arange(10).sum()))", Packages: sandbox.PackagesSympy}

func openSubject(ctx context.Context) (subject, error) {
	python := bench.SandboxPython()
	executor, err := zygote.Open(zygote.Options{Python: python})
	if err != nil {
		return subject{}, err
	}
	s := subject{executor: executor, python: python, call: theCall, output: "45\n"}
	if err := s.one(ctx); err != nil {
		executor.Close()
		return subject{}, fmt.Errorf("%w (tools/sandbox-python.sh makes a Python with numpy and sympy)", err)
	}
	return s, nil
}

// one runs the call by itself.
func (s *subject) one(ctx context.Context) error { return s.run(ctx, 1) }

// batch runs the call batchSize times.
func (s *subject) batch(ctx context.Context) error { return s.run(ctx, batchSize) }

func (s *subject) run(ctx context.Context, n int) error {
	calls := make([]sandbox.Call, n)
	for i := range calls {
		calls[i] = s.call
	}
	results, err := s.executor.Run(ctx, calls)
	if err != nil {
		return err
	}
	for _, r := range results {
		if err := check(r, s.output); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error unless the verdict is ok with this output.
func check(r sandbox.Result, output string) error {
	if r.Status != sandbox.StatusOK || r.Stdout != output {
		return fmt.Errorf("the call ended as %s and printed %q, want %q: %s", r.Status, r.Stdout, output,
			lastLine(r.Stderr))
	}
	return nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
