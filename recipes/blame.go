package recipes

import (
	"fmt"
	"slices"
)

// blameOverrides gives each fault of a file's line that the file does not have by itself to the override that brings
// it: the last one without which the fault is not there. The message still names the line.
func (d *decoder) blameOverrides(data []byte, overrides []override) {
	if d.blameless || !slices.ContainsFunc(d.problems, Problem.inFile) {
		return
	}
	for n := len(overrides) - 1; n >= 0; n-- {
		before := d.problemsWith(data, overrides[:n])
		for i, p := range d.problems {
			if p.inFile() && !slices.Contains(before, p) {
				d.problems[i] = p.broughtBy(overrides[n])
			}
		}
	}
}

// problemsWith returns the faults of the same text under other overrides.
func (d *decoder) problemsWith(data []byte, overrides []override) Problems {
	other := newDecoder(d.file)
	other.source, other.committed = d.source, d.committed
	other.blameless = true
	_, _ = other.parse(data, overrides) // the faults are read below
	return other.problems
}

// inFile reports whether the fault is at a line of a file.
func (p Problem) inFile() bool { return !p.fromOverride() && p.Line > 0 }

// broughtBy returns the fault as one of an override.
func (p Problem) broughtBy(o override) Problem {
	return Problem{File: o.origin, Path: p.Path, Message: fmt.Sprintf("%s (%s:%d)", p.Message, p.File, p.Line)}
}
