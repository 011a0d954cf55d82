package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ceiling is a line of ceilings.txt.
type ceiling struct {
	name      string
	most, aim int // aim is -1 if there is none
	reason    string
}

const ceilingsFile = "internal/house/ceilings.txt"

// parseCeilings reads lines of MEASURE | CEILING | AIM | REASON. A # begins a comment.
func parseCeilings(text string) (out []ceiling, err error) {
	for i, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, "|")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		if len(fields) != 4 {
			return nil, fmt.Errorf("%s:%d: want MEASURE | CEILING | AIM | REASON, got %q", ceilingsFile, i+1, line)
		}
		c := ceiling{name: fields[0], aim: -1, reason: fields[3]}
		if c.most, err = strconv.Atoi(fields[1]); err == nil && fields[2] != "" {
			c.aim, err = strconv.Atoi(fields[2])
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: parse a number: %w", ceilingsFile, i+1, err)
		}
		if find(out, c.name) != nil {
			return nil, fmt.Errorf("%s:%d: %s is listed twice", ceilingsFile, i+1, c.name)
		}
		out = append(out, c)
	}
	return out, nil
}

func find(cs []ceiling, name string) *ceiling {
	if i := slices.IndexFunc(cs, func(c ceiling) bool { return c.name == name }); i >= 0 {
		return &cs[i]
	}
	return nil
}

// faults returns figures above their ceilings, measures without one, and ceilings without a measure.
func faults(ms []measure, cs []ceiling) (out []error) {
	for _, m := range ms {
		switch c := find(cs, m.name); {
		case c == nil:
			out = append(out, fmt.Errorf("%s: %d, and %s has no line for it", m.name, m.figure, ceilingsFile))
		case m.figure > c.most:
			out = append(out, fmt.Errorf("%s: %d, and the ceiling is %d. It counts most in\n%s"+
				"Take away as much as you add. A ceiling rises only with its reason, in the last column of %s",
				m.name, m.figure, c.most, list(m.from[:min(8, len(m.from))]), ceilingsFile))
		}
	}
	for _, c := range cs {
		if !slices.ContainsFunc(ms, func(m measure) bool { return m.name == c.name }) {
			out = append(out, fmt.Errorf("%s: %s has a line for it, and it is no measure", c.name, ceilingsFile))
		}
	}
	return out
}

// lower returns the file with ceilings lowered to the figures, and without lines that name no measure. Comments stay.
// Ceilings of the main path stay too: its figures vary a little from run to run.
func lower(text string, cs []ceiling, ms []measure) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line[0] == '#' {
			b.WriteString(line)
		}
	}
	for _, m := range ms {
		c := find(cs, m.name)
		if c == nil {
			continue
		}
		if !strings.HasPrefix(m.name, "main path") {
			c.most = min(c.most, m.figure)
		}
		line := fmt.Sprintf("%-38s | %6d | %6s | %s", c.name, c.most, figure(c.aim), c.reason)
		fmt.Fprintln(&b, strings.TrimSpace(line))
	}
	return b.String()
}
