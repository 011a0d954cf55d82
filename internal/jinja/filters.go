package jinja

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// arguments are what a filter is given besides its value.
type arguments struct {
	args  []any
	named *Dict
}

// get returns an argument by its place or its name.
func (a arguments) get(i int, name string, absent any) any {
	if i >= 0 && i < len(a.args) {
		return a.args[i]
	}
	if v, ok := a.named.Get(name); ok {
		return v
	}
	return absent
}

// filters are the filters that templates may use. init fills it, for some filters apply others.
var filters map[string]func(r *renderer, of any, a arguments) (any, error)

func init() {
	same := func(_ *renderer, of any, _ arguments) (any, error) { return of, nil }
	onText := func(f func(string) string) func(*renderer, any, arguments) (any, error) {
		return func(_ *renderer, of any, _ arguments) (any, error) { return f(text(of)), nil }
	}
	filters = map[string]func(*renderer, any, arguments) (any, error){
		"tojson": toJSON, "trim": trim, "length": length, "count": length, "default": orDefault, "d": orDefault,
		"upper": onText(strings.ToUpper), "lower": onText(strings.ToLower), "capitalize": onText(capitalize),
		"title": onText(title), "string": onText(func(s string) string { return s }), "safe": same,
		"escape": onText(escapeHTML), "e": onText(escapeHTML),
		"join": join, "first": first, "last": last, "list": list, "items": items, "dictsort": dictsort,
		"replace": replace, "reverse": reverse, "unique": unique, "sort": sorted, "indent": indent,
		"int": toInt, "float": toFloat, "abs": absolute, "round": round, "sum": sum, "min": extreme(-1),
		"max": extreme(1), "map": mapped, "select": chosen(false, false), "reject": chosen(true, false),
		"selectattr": chosen(false, true), "rejectattr": chosen(true, true), "attr": attr,
	}
}

func toJSON(_ *renderer, of any, a arguments) (any, error) {
	l := layout{item: ", ", key: ": "}
	switch n := a.get(0, "indent", nil).(type) {
	case int:
		l.lines, l.indent, l.item = true, strings.Repeat(" ", max(n, 0)), ","
	case string:
		l.lines, l.indent, l.item = true, n, ","
	}
	if pair, ok := a.get(-1, "separators", nil).([]any); ok && len(pair) == 2 {
		l.item, l.key = text(pair[0]), text(pair[1])
	}
	l.sortsKeys = truth(a.get(-1, "sort_keys", false))
	l.ascii = truth(a.get(-1, "ensure_ascii", false))
	var b strings.Builder
	err := l.dump(&b, of, 0)
	return b.String(), err
}

func trim(_ *renderer, of any, a arguments) (any, error) {
	return strip(text(of), a.get(0, "chars", nil), true, true)
}

func length(_ *renderer, of any, _ arguments) (any, error) {
	if s, ok := of.(string); ok {
		return utf8.RuneCountInString(s), nil
	}
	all, err := elements(of)
	return len(all), err
}

func orDefault(_ *renderer, of any, a arguments) (any, error) {
	_, absent := of.(undefined)
	if absent || truth(a.get(1, "boolean", false)) && !truth(of) {
		return a.get(0, "default_value", ""), nil
	}
	return of, nil
}

func capitalize(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToTitle(r)) + strings.ToLower(s[n:])
}

func title(s string) string {
	inside := false
	return strings.Map(func(r rune) rune {
		before := inside
		inside = unicode.IsLetter(r) || r == '\''
		if before {
			return unicode.ToLower(r)
		}
		return unicode.ToTitle(r)
	}, s)
}

func escapeHTML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;").Replace(s)
}

func join(r *renderer, of any, a arguments) (any, error) {
	all, err := elements(of)
	if err != nil {
		return nil, err
	}
	by := a.get(-1, "attribute", nil)
	if len(a.args) > 1 {
		by = a.args[1]
	}
	parts := make([]string, len(all))
	size := 0
	for i, v := range all {
		if by != nil {
			if v, err = path(v, by); err != nil {
				return nil, err
			}
		}
		parts[i] = text(v)
		if size += len(parts[i]); size > mostOutput {
			return nil, errOutput
		}
	}
	return strings.Join(parts, text(a.get(0, "d", ""))), r.step()
}

// path returns the value at an attribute like a.b.0.
func path(of, by any) (any, error) {
	if i, ok := by.(int); ok {
		return indexed(of, i), nil
	}
	for name := range strings.SplitSeq(text(by), ".") {
		if i, err := strconv.Atoi(name); err == nil {
			of = indexed(of, i)
			continue
		}
		d, ok := of.(*Dict)
		if !ok {
			return undefined{name}, nil
		}
		if of, ok = d.Get(name); !ok {
			return undefined{name}, nil
		}
	}
	return of, nil
}

func indexed(of any, i int) any {
	if all, ok := of.([]any); ok && i >= 0 && i < len(all) {
		return all[i]
	}
	return undefined{fmt.Sprint(i)}
}

func first(_ *renderer, of any, _ arguments) (any, error) { return end(of, true) }
func last(_ *renderer, of any, _ arguments) (any, error)  { return end(of, false) }

func end(of any, first bool) (any, error) {
	all, err := elements(of)
	if err != nil || len(all) == 0 {
		return undefined{"an item of an empty list"}, err
	}
	if first {
		return all[0], nil
	}
	return all[len(all)-1], nil
}

func list(_ *renderer, of any, _ arguments) (any, error) {
	all, err := elements(of)
	return slices.Clone(all), err
}

func items(_ *renderer, of any, _ arguments) (any, error) {
	switch d := of.(type) {
	case *Dict:
		return pairs(d), nil
	case undefined:
		return []any{}, nil
	}
	return nil, errors.New("want a mapping")
}

func pairs(d *Dict) []any {
	out := make([]any, len(d.keys))
	for i, k := range d.keys {
		out[i] = []any{k, d.values[k]}
	}
	return out
}

func dictsort(_ *renderer, of any, _ arguments) (any, error) {
	d, ok := of.(*Dict)
	if !ok {
		return nil, errors.New("want a mapping")
	}
	out := pairs(d)
	slices.SortStableFunc(out, func(a, b any) int {
		return strings.Compare(strings.ToLower(text(a.([]any)[0])), strings.ToLower(text(b.([]any)[0])))
	})
	return out, nil
}

func replace(r *renderer, of any, a arguments) (any, error) {
	return replaced(text(of), []any{a.get(0, "old", ""), a.get(1, "new", ""), a.get(2, "count", nil)})
}

func reverse(_ *renderer, of any, _ arguments) (any, error) {
	all, err := elements(of)
	if err != nil {
		return nil, err
	}
	back := slices.Clone(all)
	slices.Reverse(back)
	if _, is := of.(string); is {
		var b strings.Builder
		for _, c := range back {
			b.WriteString(c.(string))
		}
		return b.String(), nil
	}
	return back, nil
}

func unique(r *renderer, of any, _ arguments) (any, error) {
	all, err := elements(of)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, v := range all {
		if r.steps += len(out); r.steps > mostSteps {
			return nil, r.step()
		}
		if !slices.ContainsFunc(out, func(o any) bool { return equal(o, v) }) {
			out = append(out, v)
		}
	}
	return out, nil
}

func sorted(_ *renderer, of any, a arguments) (any, error) {
	all, err := elements(of)
	if err != nil {
		return nil, err
	}
	out, by := slices.Clone(all), a.get(2, "attribute", nil)
	slices.SortStableFunc(out, func(x, y any) int {
		if by != nil {
			x, _ = path(x, by)
			y, _ = path(y, by)
		}
		if s, ok := x.(string); ok && !truth(a.get(1, "case_sensitive", false)) {
			x = strings.ToLower(s)
			if t, ok := y.(string); ok {
				y = strings.ToLower(t)
			}
		}
		c, bad := compare(x, y)
		if bad != nil {
			err = bad
		}
		return c
	})
	if truth(a.get(0, "reverse", false)) {
		slices.Reverse(out)
	}
	return out, err
}

func indent(_ *renderer, of any, a arguments) (any, error) {
	by := strings.Repeat(" ", 4)
	switch n := a.get(0, "width", 4).(type) {
	case int:
		by = strings.Repeat(" ", min(max(n, 0), 1000))
	case string:
		by = n
	}
	lines := strings.Split(text(of), "\n")
	for i, line := range lines {
		if i == 0 && !truth(a.get(1, "first", false)) || i > 0 && line == "" && !truth(a.get(2, "blank", false)) {
			continue
		}
		lines[i] = by + line
	}
	return strings.Join(lines, "\n"), nil
}

func toInt(_ *renderer, of any, a arguments) (any, error) {
	switch v := of.(type) {
	case string:
		if n, err := strconv.Atoi(strings.TrimSpace(v)); err == nil {
			return n, nil
		}
		if x, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil && math.Abs(x) < 1<<53 {
			return int(x), nil
		}
	default:
		if x, _, ok := asNumber(of); ok && math.Abs(x) < 1<<53 {
			return int(x), nil
		}
	}
	return a.get(0, "default", 0), nil
}

func toFloat(_ *renderer, of any, a arguments) (any, error) {
	if s, ok := of.(string); ok {
		if x, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
			return x, nil
		}
	}
	if x, _, ok := asNumber(of); ok {
		return x, nil
	}
	return a.get(0, "default", 0.0), nil
}

func absolute(_ *renderer, of any, _ arguments) (any, error) {
	switch v := of.(type) {
	case int:
		return max(v, -v), nil
	case float64:
		return math.Abs(v), nil
	}
	return nil, fmt.Errorf("%s is no number", typeName(of))
}

func round(_ *renderer, of any, a arguments) (any, error) {
	x, _, ok := asNumber(of)
	digits, whole := a.get(0, "precision", 0).(int)
	if !ok || !whole {
		return nil, errors.New("want a number and whole digits")
	}
	scale := math.Pow(10, float64(digits))
	switch text(a.get(1, "method", "common")) {
	case "ceil":
		return math.Ceil(x*scale) / scale, nil
	case "floor":
		return math.Floor(x*scale) / scale, nil
	}
	return math.RoundToEven(x*scale) / scale, nil
}

func sum(r *renderer, of any, a arguments) (any, error) {
	all, err := elements(of)
	if err != nil {
		return nil, err
	}
	total := a.get(1, "start", 0)
	for _, v := range all {
		if by := a.get(0, "attribute", nil); by != nil {
			if v, err = path(v, by); err != nil {
				return nil, err
			}
		}
		if total, err = arithmetic("+", total, v); err != nil {
			return nil, err
		}
	}
	return total, r.step()
}

func extreme(sign int) func(*renderer, any, arguments) (any, error) {
	return func(_ *renderer, of any, _ arguments) (any, error) {
		all, err := elements(of)
		if err != nil || len(all) == 0 {
			return undefined{"an item of an empty list"}, err
		}
		best := all[0]
		for _, v := range all[1:] {
			c, err := compare(v, best)
			if err != nil {
				return nil, err
			}
			if c*sign > 0 {
				best = v
			}
		}
		return best, nil
	}
}

func mapped(r *renderer, of any, a arguments) (any, error) {
	all, err := elements(of)
	if err != nil {
		return nil, err
	}
	out := make([]any, len(all))
	by := a.get(-1, "attribute", nil)
	for i, v := range all {
		if err := r.step(); err != nil {
			return nil, err
		}
		switch {
		case by != nil:
			out[i], err = path(v, by)
			if _, is := out[i].(undefined); is {
				out[i] = a.get(-1, "default", out[i])
			}
		case len(a.args) > 0 && filters[text(a.args[0])] != nil:
			out[i], err = filters[text(a.args[0])](r, v, arguments{a.args[1:], a.named})
		default:
			err = errors.New("want an attribute or a filter that is supported")
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// chosen is the filter that keeps the items which a test accepts, or rejects. by says that the test is of an attribute.
func chosen(rejects, by bool) func(*renderer, any, arguments) (any, error) {
	return func(r *renderer, of any, a arguments) (any, error) {
		all, err := elements(of)
		if err != nil {
			return nil, err
		}
		args := a.args
		var name any
		if by {
			if len(args) == 0 {
				return nil, errors.New("want an attribute")
			}
			name, args = args[0], args[1:]
		}
		out := []any{}
		for _, item := range all {
			if err := r.step(); err != nil {
				return nil, err
			}
			v := item
			if by {
				if v, err = path(item, name); err != nil {
					return nil, err
				}
			}
			ok := truth(v)
			if len(args) > 0 {
				test := tests[text(args[0])]
				if test == nil {
					return nil, fmt.Errorf("the test %q is not supported", text(args[0]))
				}
				if ok, err = test(v, args[1:]); err != nil {
					return nil, err
				}
			}
			if ok != rejects {
				out = append(out, item)
			}
		}
		return out, nil
	}
}

func attr(_ *renderer, of any, a arguments) (any, error) { return get(of, text(a.get(0, "name", ""))) }
