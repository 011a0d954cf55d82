package recipes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one fault of a recipe.
type Problem struct {
	// File is the recipe's file, or the override that caused the fault (--set a.b=c). An override has no Line.
	File    string
	Line    int // from 1; 0 if there is none
	Column  int
	Path    string // path of the field; "" for the document
	Message string
}

// Error renders the problem as file:line: path: message. It leaves out the path if the override's text already names
// it.
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	b.WriteString(": ")
	if p.Path != "" && !p.namesPath() {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// fromOverride reports whether an override caused the fault.
func (p Problem) fromOverride() bool { return strings.HasPrefix(p.File, "--") }

func (p Problem) namesPath() bool {
	return strings.HasPrefix(p.File, "--set "+p.Path+"=") || strings.HasPrefix(p.File, "--"+p.Path+"=")
}

// Problems is every fault of a recipe: first the faults of its files by name and line, then those of the overrides.
type Problems []Problem

// Error prints one problem per line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

func (ps Problems) sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		if a.fromOverride() != b.fromOverride() {
			if a.fromOverride() {
				return 1
			}
			return -1
		}
		if !a.fromOverride() && a.File != b.File {
			return cmp.Compare(a.File, b.File)
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
}
