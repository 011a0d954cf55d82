package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// part is one measurement or check. Its figures count also where it fails, as far as it came.
type part struct {
	name string
	run  func(ctx context.Context, l *lab) (figures, error)
}

// figures are what a part found. They are encoded as JSON.
type figures interface {
	rows() []row // for people
}

// row is a line of the table.
type row struct {
	what, value string
	aim         string // what is wanted of the value, or ""
}

// parts run in this order. A part that needs nothing of the engine comes first.
func parts() []part {
	return []part{
		{"inventory", inventory},
		{"tokens", tokens},
		{"peer", besidePeer},
		{"tax", tax},
		{"generate", generate},
		{"save", save},
		{"deterministic", deterministic},
		{"kill", kill},
		{"parity", parity},
		{"quickstart", quickstart},
	}
}

func partNames() []string {
	var out []string
	for _, p := range parts() {
		out = append(out, p.name)
	}
	return out
}

// runParts runs the parts asked for and writes the report after each. Only what keeps the report from being written is
// its error.
func runParts(ctx context.Context, l *lab, all []part, r *report, stderr io.Writer) error {
	for _, p := range all {
		if len(l.o.only) > 0 && !slices.Contains(l.o.only, p.name) {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		out := outcome{Status: statusSkipped, Commit: commit, At: now()}
		if out.Why = l.skips(p.name); out.Why == "" {
			fmt.Fprintf(stderr, "%s …\n", p.name)
			out = runPart(ctx, l, p)
			fmt.Fprintf(stderr, "%s: %s\n", p.name, out.said())
		}
		if err := r.add(p.name, out, l); err != nil {
			return err
		}
	}
	return nil
}

func runPart(ctx context.Context, l *lab, p part) outcome {
	out := outcome{Status: statusOK, Commit: commit, At: now()}
	bounded, cancel := context.WithTimeoutCause(ctx, l.o.limit, fmt.Errorf("it took longer than %s", l.o.limit))
	defer cancel()
	began := time.Now()
	found, err := p.run(bounded, l)
	if released := l.release(ctx); err == nil {
		err = released
	}
	out.Seconds = time.Since(began).Seconds()
	if errors.Is(err, errSkipped) {
		out.Status, out.Why = statusSkipped, err.Error()
		return out
	}
	if found != nil {
		var encoded error
		if out.Figures, encoded = json.Marshal(found); encoded == nil {
			out.rows = found.rows()
		}
		err = errors.Join(err, encoded)
	}
	if err != nil {
		if cause := context.Cause(bounded); cause != nil {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		out.Status, out.Why = statusFailed, err.Error()
	}
	return out
}

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// errSkipped marks what cannot be had here, which is no failure.
var errSkipped = errors.New("skipped")
