package sql

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/internal/terminal"
)

// widest is how many characters of a cell a table shows; CSV and JSON have all of them.
const widest = 80

// WriteTable prints the result as an aligned table, with the number of its rows.
func (r Result) WriteTable(w io.Writer) error {
	cells := make([][]string, 0, len(r.Rows)+1)
	cells = append(cells, r.Columns)
	right := make([]bool, len(r.Columns)) // numbers are aligned to the right
	for i := range right {
		right[i] = len(r.Rows) > 0
	}
	for _, row := range r.Rows {
		line := make([]string, len(row))
		for i, v := range row {
			line[i] = cell(text(v))
			right[i] = right[i] && numeric(v)
		}
		cells = append(cells, line)
	}
	widths := make([]int, len(r.Columns))
	for _, line := range cells {
		for i, c := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for n, line := range cells {
		b.WriteString(aligned(line, widths, right))
		if n == 0 {
			b.WriteString(rule(widths))
		}
	}
	fmt.Fprintf(&b, "(%d %s)\n", len(r.Rows), plural("row", len(r.Rows)))
	_, err := io.WriteString(w, b.String())
	return err
}

func aligned(line []string, widths []int, right []bool) string {
	out := make([]string, len(line))
	for i, c := range line {
		space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
		if right[i] {
			out[i] = space + c
		} else {
			out[i] = c + space
		}
	}
	return strings.TrimRight(strings.Join(out, "  "), " ") + "\n"
}

func rule(widths []int) string {
	out := make([]string, len(widths))
	for i, n := range widths {
		out[i] = strings.Repeat("─", n)
	}
	return strings.Join(out, "  ") + "\n"
}

func plural(word string, n int) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

func numeric(v any) bool {
	switch v.(type) {
	case nil, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float64, json.Number:
		return true
	}
	return false
}

// cell puts a text on one line, without characters that could control a terminal.
func cell(s string) string {
	s = terminal.Line(strings.ReplaceAll(s, "\n", "⏎"))
	if utf8.RuneCountInString(s) > widest {
		s = string([]rune(s)[:widest-1]) + "…"
	}
	return s
}

// WriteCSV writes the result as CSV (RFC 4180) with a header; null is the empty field. A text that a spreadsheet would
// run as a formula begins with a quotation mark ('), because others have written it.
func (r Result) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	header := make([]string, len(r.Columns))
	for i, name := range r.Columns {
		header[i] = marked(name)
	}
	if err := out.Write(header); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	for _, row := range r.Rows {
		line := make([]string, len(row))
		for i, v := range row {
			if line[i] = text(v); !numeric(v) {
				line[i] = marked(line[i])
			}
		}
		if err := out.Write(line); err != nil {
			return fmt.Errorf("write CSV: %w", err)
		}
	}
	out.Flush()
	return out.Error()
}

// marked is a text with a mark if spreadsheets take it for a formula. A number is none.
func marked(s string) string {
	first, _ := utf8.DecodeRuneInString(s)
	_, err := strconv.ParseFloat(s, 64)
	if err == nil || s == "" || !strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		return s
	}
	return "'" + s
}
