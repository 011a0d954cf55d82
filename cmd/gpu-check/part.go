package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/bench"
)

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
