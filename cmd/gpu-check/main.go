// Command gpu-check measures the PyTorch engine and checks its promises on a machine that has only a python3 with torch
// and transformers. The program contains the engine, and models have random weights.
//
// Glossary. A *part* is one measurement or check. Parts run one after the other, each within its limit, and the report
// is written after each (internal/bench, whose harness this is). The *lab* is what parts share: devices, one engine,
// one peer. The *peer* is a plain loop over transformers and torch (peer.py), measured in the same run with the same
// settings.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// commit names the sources from which the program was built. The linker sets it.
var commit = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program. It returns the exit status: 0 if nothing failed, 1 if a part failed, 2 for bad arguments.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, errHelp) {
		return 0
	}
	var r *report
	if err == nil {
		r, err = openReport(o)
	}
	if err != nil {
		fmt.Fprintln(stderr, "gpu-check:", err)
		return 2
	}
	l, err := openLab(o, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "gpu-check:", err)
		return 1
	}
	defer l.Close()
	if err := runParts(ctx, l, parts(), r, stderr); err != nil {
		fmt.Fprintln(stderr, "gpu-check:", err)
		return 1
	}
	r.print(stdout)
	if r.any(bench.StatusFailed) {
		return 1
	}
	return 0
}

// part is one measurement or check. If it fails, the figures that it has added so far still count.
type part struct {
	name string
	run  func(ctx context.Context, l *lab, r *bench.Report) error
}

// parts run in this order. Parts that do not need the engine come first.
func parts() []part {
	return []part{
		{"inventory", inventory},
		{"tokens", tokens},
		{"peer", against},
		{"tax", tax},
		{"generate", generate},
		{"together", together},
		{"save", save},
		{"deterministic", deterministic},
		{"kill", kill},
		{"parity", parity},
	}
}

func partNames() []string {
	var out []string
	for _, p := range parts() {
		out = append(out, p.name)
	}
	return out
}

// runParts runs the chosen parts and writes the report after each. Its error is that of writing the report; parts that
// fail are in the report.
func runParts(ctx context.Context, l *lab, all []part, r *report, stderr io.Writer) error {
	for _, p := range all {
		if len(l.o.only) > 0 && !slices.Contains(l.o.only, p.name) {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		out := newOutcome()
		if out.Why = l.skips(p.name); out.Why != "" {
			out.Status = bench.StatusSkipped
		} else {
			fmt.Fprintf(stderr, "%s …\n", p.name)
			out = runPart(ctx, l, p)
			fmt.Fprintf(stderr, "%s: %s\n", p.name, out)
		}
		if err := r.add(p.name, out, l); err != nil {
			return err
		}
	}
	return nil
}

func runPart(ctx context.Context, l *lab, p part) outcome {
	out := newOutcome()
	found := &bench.Report{}
	out.Outcome, _ = bench.RunPart(ctx, l.o.limit, func(bounded context.Context) error {
		err := p.run(bounded, l, found)
		if released := l.release(ctx); err == nil {
			err = released
		}
		return err
	})
	if out.Status == bench.StatusSkipped {
		return out
	}
	if _, err := json.Marshal(found); err != nil { // a figure that is no number
		out.Status, out.Why = bench.StatusFailed, strings.TrimSpace(out.Why+" "+err.Error())
		return out
	}
	out.Rows = found.Rows
	return out
}
