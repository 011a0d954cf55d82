package curation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/rl/reward"
)

// Examination is what a file of tasks holds, as a run would read it.
type Examination struct {
	File       string                    `json:"file"`
	SHA256     string                    `json:"sha256"`
	Shape      string                    `json:"shape,omitempty"` // of a public set
	Rows       int                       `json:"rows"`
	Columns    map[string]map[string]int `json:"columns"` // values of each type
	Bad        int                       `json:"bad_rows"`
	Faults     []string                  `json:"faults,omitempty"` // of the first bad rows
	Golds      map[string]int            `json:"golds"`            // by how answers are compared with them
	Duplicates int                       `json:"duplicates"`       // rows whose question an earlier row has
	Unit       string                    `json:"unit"`             // of lengths
	Median     int                       `json:"median"`
	P95        int                       `json:"p95"`
	Longest    int                       `json:"longest"`
	Overlaps   []Overlap                 `json:"overlaps,omitempty"`
	Examples   []Example                 `json:"examples"`
}

// Overlap is what a file shares with an evaluation set.
type Overlap struct {
	Set    string `json:"set"`
	Rows   int    `json:"rows"`
	Shared string `json:"shared,omitempty"` // an n-gram of both
}

// Example is one task.
type Example struct {
	Row      int    `json:"row"`
	Question string `json:"question"`
	Answer   string `json:"answer"`
}

// Examiner examines files of the tasks of one environment.
type Examiner struct {
	Declaration env.Declaration
	Settings    env.Settings
	Fetch       dataset.Fetch             // opens remote files
	Against     []string                  // files of evaluation sets
	Tokens      func(text string) []int32 // nil: lengths are in characters
	Shown       int                       // examples and faults at most
}

// gramWords is how many words in a row a question may not share with an evaluation set, as rStar2-Agent has it.
const gramWords = 8

// Examine reads a file. Bad rows are counted.
func (x Examiner) Examine(ctx context.Context, file string) (out Examination, err error) {
	out = Examination{File: file, Columns: map[string]map[string]int{}, Golds: map[string]int{}, Unit: "characters"}
	length := utf8.RuneCountInString
	if x.Tokens != nil {
		out.Unit, length = "tokens", func(text string) int { return len(x.Tokens(text)) }
	}
	sets := make([]*gramSet, len(x.Against))
	for i, set := range x.Against {
		sets[i] = newGrams(gramWords, mostGrams)
		out.Overlaps = append(out.Overlaps, Overlap{Set: set})
		var full error
		_, err := x.Declaration.Rows(ctx, x.options(), set, func(r env.FileRow) {
			if r.Fault == nil && full == nil {
				full = sets[i].Add(set, r.Task.Text)
			}
		})
		if err = cmp.Or(err, full); err != nil {
			return out, fmt.Errorf("--against: %w", err)
		}
	}
	seen, lengths := map[string]bool{}, []int(nil)
	out.SHA256, err = x.Declaration.Rows(ctx, x.options(), file, func(r env.FileRow) {
		out.Rows++
		for name, v := range r.Cells {
			if out.Columns[name] == nil {
				out.Columns[name] = map[string]int{}
			}
			out.Columns[name][typeOf(v)]++
		}
		if r.Fault != nil {
			if out.Bad++; len(out.Faults) < x.Shown {
				out.Faults = append(out.Faults, r.Fault.Error())
			}
			return
		}
		out.Shape = r.Shape
		if len(out.Examples) < x.Shown {
			out.Examples = append(out.Examples, Example{r.Number, r.Task.Text, r.Task.Answer})
		}
		out.Golds[x.kind(r.Task)]++
		if seen[r.Task.Text] {
			out.Duplicates++
		}
		seen[r.Task.Text] = true
		lengths = append(lengths, length(r.Task.Text))
		words := wordsOf(r.Task.Text)
		for i, set := range sets {
			if gram, _, found := set.Shared(words); found {
				out.Overlaps[i].Rows++
				out.Overlaps[i].Shared = gram
			}
		}
	})
	if slices.Sort(lengths); len(lengths) > 0 {
		n := len(lengths)
		out.Median, out.P95, out.Longest = lengths[n/2], lengths[n*95/100], lengths[n-1]
	}
	return out, err
}

func (x Examiner) options() env.Options { return env.Options{Settings: x.Settings, Fetch: x.Fetch} }

// kind says how answers are compared with the gold of a task.
func (x Examiner) kind(task env.Task) string {
	switch {
	case slices.Contains(x.Declaration.Rewards, "unit_tests"):
		return "tests"
	case x.Declaration.Golds:
		return "words"
	case x.Declaration.Functions != nil:
		return "calls"
	}
	return reward.Kind(task.Answer)
}

// typeOf names the type of a value.
func typeOf(v any) string {
	switch v.(type) {
	case string:
		return "text"
	case []any:
		return "list"
	case map[string]any:
		return "mapping"
	case bool:
		return "truth value"
	case json.Number:
		return "number"
	}
	return "unreadable"
}

// Write prints the examination.
func (e Examination) Write(to io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d rows, sha256 %s\n", e.File, e.Rows, e.SHA256)
	if e.Shape != "" {
		fmt.Fprintf(&b, "shape: %s\n", e.Shape)
	}
	b.WriteString("columns:\n")
	for _, name := range slices.Sorted(maps.Keys(e.Columns)) {
		fmt.Fprintf(&b, "  %-24s %s\n", name, counts(e.Columns[name]))
	}
	fmt.Fprintf(&b, "golds, by how answers are compared: %s\n", counts(e.Golds))
	fmt.Fprintf(&b, "questions that an earlier row has: %d\n", e.Duplicates)
	fmt.Fprintf(&b, "length of a question in %s: median %d, 95%% at most %d, longest %d\n", e.Unit, e.Median, e.P95,
		e.Longest)
	for _, o := range e.Overlaps {
		fmt.Fprintf(&b, "share %d words in a row with %s: %d rows", gramWords, o.Set, o.Rows)
		if o.Shared != "" {
			fmt.Fprintf(&b, ", such as %q", o.Shared)
		}
		b.WriteString("\n")
	}
	for _, x := range e.Examples {
		fmt.Fprintf(&b, "row %d: %s\n  → %s\n", x.Row, clipped(x.Question, shownRunes), clipped(x.Answer, shownRunes))
	}
	for _, f := range e.Faults {
		fmt.Fprintf(&b, "bad: %s\n", f)
	}
	_, err := io.WriteString(to, b.String())
	return err
}

func counts(of map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, of[name]))
	}
	return strings.Join(parts, ", ")
}

// shownRunes bounds what is shown of a text.
const shownRunes = 160
