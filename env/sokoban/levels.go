package sokoban

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/env"
)

// Level is a room read from a file.
type Level struct {
	Rows []string // in Boxoban's form
}

// suffix ends the names of the files of levels in a folder.
const suffix = ".txt"

// ReadLevels reads the levels of a file in Boxoban's form: a line "; NUMBER", the room's rows, an empty line, and so
// on. An error names the file, the line and the level.
func ReadLevels(f env.File) ([]Level, error) {
	var out []Level
	var rows []string
	name, first := "", 0 // of the level that is being read: its number, and the line of its first row
	finish := func() error {
		if len(rows) == 0 {
			return nil
		}
		if _, err := parseRoom(rows); err != nil {
			line := first
			if fault, ok := errors.AsType[rowFault](err); ok {
				line += fault.row
			}
			return fmt.Errorf("%s:%d: level %s: %w", f.Path, line, name, err)
		}
		out = append(out, Level{Rows: rows})
		rows = nil
		return nil
	}
	line := 0
	for text := range bytes.Lines(f.Text) {
		line++
		row := strings.TrimRight(string(text), "\r\n")
		number, header := strings.CutPrefix(row, ";")
		if header || strings.TrimSpace(row) == "" {
			if err := finish(); err != nil {
				return nil, err
			}
			if header {
				name = strings.TrimSpace(number)
			}
			continue
		}
		if len(rows) == 0 {
			first = line
		}
		rows = append(rows, row)
	}
	if err := finish(); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s holds no levels (%d lines)", f.Path, line)
	}
	return out, nil
}

// read reads the levels of a file or of a folder's files, and the digest of the files.
func read(path string) ([]Level, string, error) {
	files, digest, err := env.ReadFiles(path, suffix)
	if err != nil {
		return nil, "", fmt.Errorf("levels: %w", err)
	}
	var all []Level
	for _, f := range files {
		levels, err := ReadLevels(f)
		if err != nil {
			return nil, "", fmt.Errorf("levels: %w", err)
		}
		all = append(all, levels...)
	}
	return all, digest, nil
}

// divide divides levels into the two splits.
func divide(levels func() ([]Level, error)) (map[env.Split][]Level, error) {
	all, err := levels()
	if err != nil {
		return nil, err
	}
	out := map[env.Split][]Level{}
	for _, l := range all {
		split := splitOf(l.Rows)
		out[split] = append(out[split], l)
	}
	return out, nil
}
