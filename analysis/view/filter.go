package view

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Filter says which trajectories a list shows, and in which order. The zero value shows all those of steps, the newest
// step first.
type Filter struct {
	Held          bool // the episodes of evaluations, instead of the trajectories of steps
	Steps, Levels []Range
	Reward        Interval
	Statuses      []string // a call of one of these statuses; NoCalls for trajectories without calls
	Fates         []string
	Text          string // anywhere in problem, answer, text or id, in any case
	Where         string // SQL
	Sort          string // a column
	Descending    bool
}

// Range is a range of whole numbers, both ends included.
type Range struct{ First, Last int64 }

// Interval is a range of numbers, both ends included; NaN is no bound.
type Interval struct{ Low, High float64 }

// NoCalls selects trajectories that called no tool where a status is asked for.
const NoCalls = "none"

// names of a filter's fields in an address, which tests compare with the page's.
const (
	keyStep, keyLevel, keyLow, keyHigh, keyStatus = "step", "level", "min", "max", "status"
	keyFate, keyText, keyWhere, keySort           = "fate", "q", "where", "sort"
	keyPart                                       = "part"
)

// ParseFilter reads a filter from the query of an address.
func ParseFilter(q url.Values) (f Filter, err error) {
	if f.Steps, err = ranges(keyStep, q.Get(keyStep)); err != nil {
		return f, err
	}
	if f.Levels, err = ranges(keyLevel, q.Get(keyLevel)); err != nil {
		return f, err
	}
	if f.Reward.Low, err = bound(keyLow, q.Get(keyLow)); err != nil {
		return f, err
	}
	if f.Reward.High, err = bound(keyHigh, q.Get(keyHigh)); err != nil {
		return f, err
	}
	switch part := q.Get(keyPart); part {
	case "", partTraining:
	case partEvaluation:
		f.Held = true
	default:
		return f, fmt.Errorf("%s: want %s or %s, got %q", keyPart, partTraining, partEvaluation, part)
	}
	f.Statuses, f.Fates = q[keyStatus], q[keyFate]
	f.Text, f.Where = strings.TrimSpace(q.Get(keyText)), strings.TrimSpace(q.Get(keyWhere))
	if err := checkCondition(f.Where); err != nil {
		return f, err
	}
	f.Sort, f.Descending = strings.CutPrefix(q.Get(keySort), "-")
	if f.Sort != "" && !isColumn(f.Sort) {
		return f, fmt.Errorf("%s: there is no column %q", keySort, f.Sort)
	}
	return f, nil
}

// ranges reads numbers and ranges of them, as in "1-3,7".
func ranges(key, text string) (out []Range, err error) {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		var r Range
		if r.First, err = strconv.ParseInt(strings.TrimSpace(first), 10, 32); err == nil {
			r.Last, err = strconv.ParseInt(strings.TrimSpace(last), 10, 32)
		}
		if err != nil || r.Last < r.First {
			return nil, fmt.Errorf("%s: %q is neither a number nor a range such as 3-7", key, part)
		}
		out = append(out, r)
	}
	return out, nil
}

func bound(key, text string) (float64, error) {
	if text = strings.TrimSpace(text); text == "" {
		return math.NaN(), nil
	}
	x, err := strconv.ParseFloat(strings.Replace(text, "−", "-", 1), 64)
	if err != nil || math.IsNaN(x) {
		return 0, fmt.Errorf("%s: %q is not a number", key, text)
	}
	return x, nil
}

// clause is a condition in SQL with the values of its parameters.
type clause struct {
	conditions []string
	args       []any
}

func (c *clause) add(condition string, args ...any) {
	c.conditions, c.args = append(c.conditions, condition), append(c.args, args...)
}

// clause is the filter as a condition. The reader's own SQL comes last, on lines of its own, so that a comment in it
// ends there.
func (f Filter) clause() clause {
	var c clause
	part := partTraining
	if f.Held {
		part = partEvaluation
	}
	c.add("part = ?", part)
	c.within("step", f.Steps)
	c.within("level", f.Levels)
	if !math.IsNaN(f.Reward.Low) {
		c.add("reward >= ?", f.Reward.Low)
	}
	if !math.IsNaN(f.Reward.High) {
		c.add("reward <= ?", f.Reward.High)
	}
	c.status(f.Statuses)
	if len(f.Fates) > 0 {
		c.add("fate in ("+marks(len(f.Fates))+")", anys(f.Fates)...)
	}
	if f.Text != "" {
		pattern := "%" + likeEscaper.Replace(f.Text) + "%"
		c.add(`(text ilike ? escape '\' or problem ilike ? escape '\' or answer ilike ? escape '\' or `+
			`trajectory_id ilike ? escape '\' or problem_id ilike ? escape '\')`, pattern, pattern, pattern, pattern,
			pattern)
	}
	if f.Where != "" {
		c.add("(\n" + f.Where + "\n)")
	}
	return c
}

// likeEscaper takes away the meaning that characters have in a pattern.
var likeEscaper = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`)

func (c *clause) within(column string, all []Range) {
	var parts []string
	var args []any
	for _, r := range all {
		parts, args = append(parts, column+" between ? and ?"), append(args, r.First, r.Last)
	}
	if len(parts) > 0 {
		c.add("("+strings.Join(parts, " or ")+")", args...)
	}
}

func (c *clause) status(all []string) {
	var parts []string
	var args []any
	for _, s := range all {
		if s == NoCalls {
			parts = append(parts, "len(statuses) = 0")
			continue
		}
		parts, args = append(parts, "list_contains(statuses, ?)"), append(args, s)
	}
	if len(parts) > 0 {
		c.add("("+strings.Join(parts, " or ")+")", args...)
	}
}

// where is the condition with its keyword, or nothing.
func (c clause) where() string {
	if len(c.conditions) == 0 {
		return ""
	}
	return " where " + strings.Join(c.conditions, " and ")
}

// order is the order of the rows: that of the record within equal values.
func (f Filter) order() string {
	return fmt.Sprintf(" order by %q %s, trajectory_id", cmp.Or(f.Sort, "step"), f.direction())
}

// direction is the direction of the order; without a column to sort by, the newest step comes first.
func (f Filter) direction() string {
	if f.Descending || f.Sort == "" {
		return "desc nulls last"
	}
	return "asc nulls last"
}

func marks(n int) string { return strings.Join(slices.Repeat([]string{"?"}, n), ", ") }

func anys(all []string) []any {
	out := make([]any, len(all))
	for i, s := range all {
		out[i] = s
	}
	return out
}

// Page is the part of a list that is asked for.
type Page struct {
	Offset, Limit int
	Find          string // a trajectory whose place in the list is asked for too
}

// mostRows bounds the rows of one answer.
const mostRows = 500

// parsePage reads which part of a list is asked for.
func parsePage(q url.Values) (Page, error) {
	p := Page{Limit: 100, Find: q.Get("find")}
	for _, field := range []struct {
		key  string
		into *int
	}{{"offset", &p.Offset}, {"limit", &p.Limit}} {
		text := cmp.Or(q.Get(field.key), strconv.Itoa(*field.into))
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return p, fmt.Errorf("%s: %q is not a number ≥ 0", field.key, text)
		}
		*field.into = n
	}
	p.Limit = min(p.Limit, mostRows)
	return p, nil
}
