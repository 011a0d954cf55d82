package dataset

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// condition is what a filter wants of a column: one of some texts (a | b), or comparisons that all hold (>= 2 & < 5,
// != a). Numbers are compared by value. A row without a value meets only != conditions.
type condition struct {
	column column
	all    []comparison
}

type comparison struct {
	operator string // "" means equal to one of the values
	values   []string
}

// operation matches an operator, if there is one, and the values after it.
var operation = regexp.MustCompile(`(?s)^([<>!]=|[<>=])?(.*)$`)

func parseCondition(path, text string) (c condition, err error) {
	if c.column, err = parseColumn(path); err != nil {
		return c, err
	}
	for part := range strings.SplitSeq(text, "&") {
		found := operation.FindStringSubmatch(strings.TrimSpace(part))
		one := comparison{operator: found[1]}
		for value := range strings.SplitSeq(found[2], "|") {
			one.values = append(one.values, strings.TrimSpace(value))
		}
		if _, number := new(big.Rat).SetString(one.values[0]); strings.ContainsAny(one.operator, "<>") &&
			(!number || len(one.values) > 1) {
			return c, fmt.Errorf("%s: %s wants a number, got %q", path, one.operator, strings.TrimSpace(found[2]))
		}
		c.all = append(c.all, one)
	}
	return c, nil
}

// holds reports whether a row meets the condition.
func (c condition) holds(row cells) (bool, error) {
	v, err := c.column.value(row)
	if truth, is := v.(bool); is {
		v = strconv.FormatBool(truth)
	}
	var got string
	if err == nil {
		got, err = textOf(v)
	}
	if err != nil {
		return false, fmt.Errorf("%s %w", c.column.text, err)
	}
	got = strings.TrimSpace(got)
	return !slices.ContainsFunc(c.all, func(one comparison) bool { return !one.holds(got) }), nil
}

func (c comparison) holds(got string) bool {
	same := func(value string) bool {
		order, numbers := compareNumbers(got, value)
		return got == value || numbers && order == 0
	}
	switch {
	case c.operator == "!=":
		return !slices.ContainsFunc(c.values, same)
	case !strings.ContainsAny(c.operator, "<>"):
		return slices.ContainsFunc(c.values, same)
	}
	order, numbers := compareNumbers(got, c.values[0])
	wanted := map[byte]int{'<': -1, '>': 1}[c.operator[0]]
	return numbers && (order == wanted || order == 0 && strings.HasSuffix(c.operator, "="))
}

func compareNumbers(a, b string) (order int, numbers bool) {
	x, first := new(big.Rat).SetString(a)
	y, second := new(big.Rat).SetString(b)
	if !first || !second {
		return 0, false
	}
	return x.Cmp(y), true
}
