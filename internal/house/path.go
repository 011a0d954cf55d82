package main

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

// unmeasured is the figure of the main path where no file is given.
const unmeasured = -1

// mainPath measures what a step runs of workflows, activities and the driver. The file names a block of statements that
// ran in each line, as FILE:FROM.COLUMN,TO.COLUMN; tools/main-path.sh makes it. "" leaves the path unmeasured.
func (t *tree) mainPath(file string) ([]measure, error) {
	lines, executed := tally{}, tally{}
	if file == "" {
		return []measure{{"main path, files", unmeasured, nil}, {"main path, lines", unmeasured, nil},
			{"main path, executed lines", unmeasured, nil}, {unlisted, unmeasured, nil}}, nil
	}
	blocks, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	ran := map[string]map[int]bool{} // lines, by file
	for block := range strings.Lines(string(blocks)) {
		name, span, _ := strings.Cut(strings.TrimPrefix(block, t.module+"/"), ":")
		var from, to, column int
		if _, err := fmt.Sscanf(span, "%d.%d,%d.%d", &from, &column, &to, &column); err != nil {
			return nil, fmt.Errorf("%s: parse %q: %w", file, block, err)
		}
		if ran[name] == nil {
			ran[name] = map[int]bool{}
		}
		for n := from; n <= to; n++ {
			ran[name][n] = true
		}
	}
	for _, f := range t.files {
		if ran[f.path] == nil || !drives(f) {
			continue
		}
		lines[f.path] = f.lines()
		for i, code := range f.code {
			if code && ran[f.path][i+1] {
				executed[f.path]++
			}
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s: it names no file of workflows, activities or the driver", file)
	}
	other, err := t.otherThanListed(lines)
	return []measure{number("main path, files", lines), sum("main path, lines", lines),
		sum("main path, executed lines", executed), number(unlisted, other)}, err
}

// unlisted names the measure of how DESIGN.md's list of the main path and the measured path differ.
const unlisted = "main path, files other than in DESIGN.md"

// listed is a line of DESIGN.md's list of the main path: the file, and * if only some steps execute it.
var listed = regexp.MustCompile("`([^`]+\\.go)`(\\*?):")

// otherThanListed returns the files of the path that DESIGN.md does not list, and those that only DESIGN.md does.
func (t *tree) otherThanListed(measured tally) (tally, error) {
	text, err := fs.ReadFile(t.root, "DESIGN.md")
	if err != nil {
		return nil, err
	}
	_, section, _ := strings.Cut(string(text), "\n## The main path\n")
	section, _, _ = strings.Cut(section, "\n## ")
	other := tally{}
	for file := range measured {
		other[file+", which is not listed"] = 1
	}
	for _, line := range listed.FindAllStringSubmatch(section, -1) {
		file, sometimes := line[1], line[2] == "*"
		if _, ok := measured[file]; !ok && !sometimes {
			other[file+", which is not executed"] = 1
		}
		delete(other, file+", which is not listed")
	}
	return other, nil
}
