package parquet

import (
	"strings"
	"unicode/utf8"
)

// groupEnd returns the end of the row group that begins at start, after at least one row and before the row that would
// exceed the bound.
func groupEnd[R any](rows []R, start, bound int) (end int) {
	plan := PlanOf[R]()
	size := rawBytes(&rows[start], plan)
	for end = start + 1; end < len(rows); end++ {
		more := rawBytes(&rows[end], plan)
		if size+more > bound {
			break
		}
		size += more
	}
	return end
}

// rawBytes returns a row's size before encoding and compression.
func rawBytes[R any](row *R, plan []Field) int {
	size := 0
	for i := range plan {
		switch f := &plan[i]; {
		case f.element > 0: // the header of every slice has its length at the same place
			size += 4 + f.element*len(*at[[]byte](row, f))
		case f.text && f.optional:
			size += f.size
			if text := *at[*string](row, f); text != nil {
				size += len(*text)
			}
		case f.text:
			size += 4 + len(*at[string](row, f))
		default:
			size += f.size
		}
	}
	return size
}

// WellFormed returns the rows with every text made valid UTF-8, as Parquet's strings must be. If all rows are
// well-formed, which is the usual case, it returns them unchanged.
func WellFormed[R any](rows []R) []R {
	copied := false
	for _, f := range PlanOf[R]() {
		if !f.text || f.optional {
			continue
		}
		before := ""
		for i := range rows {
			text := *at[string](&rows[i], &f)
			if text == before || utf8.ValidString(text) { // the rows of a group follow each other
				before = text
				continue
			}
			if !copied {
				rows, copied = append([]R(nil), rows...), true
			}
			*at[string](&rows[i], &f) = Text(text)
		}
	}
	return rows
}

// Text returns s as files store it: each run of bytes that is not UTF-8 becomes U+FFFD.
func Text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
