package main

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ratchet holds how many findings each folder that is not rewritten yet may have. A folder that it does not list may
// have none. Its file has a line for each folder: the number of findings and the folder, relative to the root. A #
// starts a comment.
type ratchet map[string]int

func parseRatchet(name string, text []byte) (ratchet, error) {
	out := ratchet{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("%s:%d: want COUNT FOLDER, got %q", name, n, line)
		}
		count, err := strconv.Atoi(fields[0])
		if err != nil || count <= 0 {
			return nil, fmt.Errorf("%s:%d: %q is not a positive number; remove the line of a folder without findings",
				name, n, fields[0])
		}
		if _, ok := out[fields[1]]; ok {
			return nil, fmt.Errorf("%s:%d: %s is listed twice", name, n, fields[1])
		}
		out[fields[1]] = count
	}
	return out, lines.Err()
}

// folder returns the listed folder that a file belongs to: the longest one that holds it. A listed file is its own
// folder.
func (r ratchet) folder(path string) (string, bool) {
	for at := path; ; {
		if _, ok := r[at]; ok {
			return at, true
		}
		i := strings.LastIndexByte(at, '/')
		if i < 0 {
			return "", false
		}
		at = at[:i]
	}
}

// ratchetHead is the comment that the ratchet's file begins with.
const ratchetHead = `# Folders that are not rewritten yet, each with the number of its findings. The numbers only go down: a folder with
# more findings fails "make lint", and "make lint-lower" writes lower numbers here. A folder that is not listed has none.
`

// format writes the ratchet as its file.
func (r ratchet) format() []byte {
	var b bytes.Buffer
	b.WriteString(ratchetHead)
	for _, folder := range slices.Sorted(maps.Keys(r)) {
		fmt.Fprintf(&b, "%5d %s\n", r[folder], folder)
	}
	return b.Bytes()
}

// lowered returns the ratchet with the folders' present numbers where those are lower, and without folders that have no
// finding.
func (r ratchet) lowered(have map[string]int) ratchet {
	out := ratchet{}
	for folder, allowed := range r {
		if n := min(allowed, have[folder]); n > 0 {
			out[folder] = n
		}
	}
	return out
}
