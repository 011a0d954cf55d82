package jinja

import (
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

// filter is a filter of a value.
type filter func(r *renderer, of any, a arguments) any

// filters are the filters that templates may use. init fills it, for some filters apply others.
var filters map[string]filter

func init() {
	marking := func(f func(string) string) filter {
		return func(r *renderer, of any, _ arguments) any { return safeText(r.changed(f, r.text(of))) }
	}
	same := func(s string) string { return s }
	onText := func(f func(string) string) filter {
		return func(r *renderer, of any, _ arguments) any { return r.changed(f, r.text(of)) }
	}
	filters = map[string]filter{
		"trim": func(r *renderer, of any, a arguments) any {
			return r.strip(r.text(of), a.get(0, "chars", nil), true, true)
		},
		"tojson": toJSON, "length": length, "count": length, "default": orDefault, "d": orDefault,
		"upper": onText(strings.ToUpper), "lower": onText(strings.ToLower), "capitalize": onText(capitalize),
		"title": onText(title), "string": onText(same), "safe": marking(same),
		"escape": marking(escapeHTML), "e": marking(escapeHTML), "format": formatFilter,
		"join": join, "first": end(0), "last": end(-1), "list": list, "items": items, "dictsort": dictsort,
		"replace": func(r *renderer, of any, a arguments) any {
			return r.replaced(r.text(of), []any{a.get(0, "old", ""), a.get(1, "new", ""), a.get(2, "count", nil)})
		},
		"reverse": reverse, "unique": unique, "sort": sorted, "indent": indent,
		"int": toInt, "float": toFloat, "abs": absolute, "round": round, "sum": sum, "min": extreme(-1),
		"max": extreme(1), "map": mapped, "select": chosen(false, false), "reject": chosen(true, false),
		"selectattr": chosen(false, true), "rejectattr": chosen(true, true), "attr": attr,
	}
}

func toJSON(r *renderer, of any, a arguments) any {
	l := layout{item: ", ", key: ": "}
	switch n := a.get(0, "indent", nil).(type) {
	case int:
		l.lines, l.indent, l.item = true, r.repeat(" ", n), ","
	case string:
		l.lines, l.indent, l.item = true, n, ","
	}
	if pair, ok := a.get(-1, "separators", nil).([]any); ok && len(pair) == 2 {
		l.item, l.key = r.text(pair[0]), r.text(pair[1])
	}
	l.sortsKeys = truth(a.get(-1, "sort_keys", false))
	l.ascii = truth(a.get(-1, "ensure_ascii", false))
	w := writer{r: r}
	l.dump(&w, of, 0)
	return w.String()
}

func length(r *renderer, of any, _ arguments) any {
	if s, ok := of.(string); ok {
		r.spend(len(s), 1)
		return utf8.RuneCountInString(s)
	}
	if _, ok := of.(*generator); ok {
		panic(r.failure("a generator has no length"))
	}
	return len(r.elements(of))
}

func orDefault(_ *renderer, of any, a arguments) any {
	_, absent := of.(undefined)
	if absent || truth(a.get(1, "boolean", false)) && !truth(of) {
		return a.get(0, "default_value", "")
	}
	return of
}

// changed is a text with a change that makes it six times as long at most.
func (r *renderer) changed(f func(string) string, text string) string {
	r.spend(len(text), 6)
	return f(text)
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

func join(r *renderer, of any, a arguments) any {
	all := r.elements(of)
	by := a.get(-1, "attribute", nil)
	if len(a.args) > 1 {
		by = a.args[1]
	}
	separator := r.text(a.get(0, "d", ""))
	w := writer{r: r}
	for i, v := range all {
		r.visit(1)
		if by != nil {
			v = r.path(v, by)
		}
		if i > 0 {
			w.write(separator)
		}
		w.write(r.text(v))
	}
	return w.String()
}

// path returns the value at an attribute like a.b.0.
func (r *renderer) path(of, by any) any {
	if i, ok := by.(int); ok {
		return item(of, i)
	}
	for name := range strings.SplitSeq(r.text(by), ".") {
		r.visit(1)
		if i, err := strconv.Atoi(name); err == nil {
			of = item(of, i)
			continue
		}
		d, ok := of.(*Dict)
		if !ok {
			return undefined{name}
		}
		if of, ok = d.Get(name); !ok {
			return undefined{name}
		}
	}
	return of
}

func item(of any, i int) any {
	if all, ok := of.([]any); ok && i >= 0 && i < len(all) {
		return all[i]
	}
	return undefined{fmt.Sprint(i)}
}

// end is the filter that takes the first or the last item.
func end(i int) filter {
	return func(r *renderer, of any, _ arguments) any {
		if s, ok := of.(string); ok {
			if c, ok := indexed(r.runes(s), i); ok {
				return string(c)
			}
		}
		if g, ok := of.(*generator); ok && i == 0 && len(g.left) > 0 {
			v := g.left[0]
			g.left = g.left[1:]
			return v
		} else if ok && i != 0 {
			panic(r.failure("a generator cannot be read from its end"))
		}
		if v, ok := indexed(r.elements(of), i); ok {
			return v
		}
		return undefined{"an item of an empty list"}
	}
}

func list(r *renderer, of any, _ arguments) any {
	all := r.elements(of)
	r.visit(len(all))
	return slices.Clone(all)
}

func items(r *renderer, of any, _ arguments) any {
	switch d := of.(type) {
	case *Dict:
		return &generator{r.pairs(d)}
	case undefined:
		return &generator{}
	}
	panic(r.failure("want a mapping"))
}

func (r *renderer) pairs(d *Dict) []any {
	r.visit(3 * len(d.keys))
	out := make([]any, len(d.keys))
	for i, k := range d.keys {
		out[i] = []any{k, d.values[k]}
	}
	return out
}

func dictsort(r *renderer, of any, _ arguments) any {
	d, ok := of.(*Dict)
	if !ok {
		panic(r.failure("want a mapping"))
	}
	out := r.pairs(d)
	slices.SortStableFunc(out, func(a, b any) int {
		return strings.Compare(r.lower(a.([]any)[0]), r.lower(b.([]any)[0]))
	})
	return out
}

func (r *renderer) lower(v any) string { return r.changed(strings.ToLower, r.text(v)) }

func reverse(r *renderer, of any, _ arguments) any {
	if s, ok := of.(string); ok {
		back := r.runes(s)
		slices.Reverse(back)
		return string(back)
	}
	all := r.elements(of)
	r.visit(len(all))
	back := slices.Clone(all)
	slices.Reverse(back)
	return &generator{back}
}

func unique(r *renderer, of any, _ arguments) any {
	all := r.elements(of)
	out := []any{}
	for _, v := range all {
		if !slices.ContainsFunc(out, func(o any) bool { return r.equal(o, v) }) {
			out = append(out, v)
		}
	}
	return &generator{out}
}

func sorted(r *renderer, of any, a arguments) any {
	all := r.elements(of)
	r.visit(len(all))
	out, by := slices.Clone(all), a.get(2, "attribute", nil)
	slices.SortStableFunc(out, func(x, y any) int {
		if by != nil {
			x, y = r.path(x, by), r.path(y, by)
		}
		_, text := x.(string)
		if _, also := y.(string); text && also && !truth(a.get(1, "case_sensitive", false)) {
			x, y = r.lower(x), r.lower(y)
		}
		return r.compare(x, y)
	})
	if truth(a.get(0, "reverse", false)) {
		slices.Reverse(out)
	}
	return out
}

func indent(r *renderer, of any, a arguments) any {
	var by string
	switch n := a.get(0, "width", 4).(type) {
	case int:
		by = r.repeat(" ", n)
	case string:
		by = n
	}
	lines := writer{r: r}
	first := true
	for line := range strings.SplitSeq(r.text(of), "\n") {
		if !first {
			lines.write("\n")
		}
		if first && truth(a.get(1, "first", false)) || !first && (line != "" || truth(a.get(2, "blank", false))) {
			lines.write(by)
		}
		lines.write(line)
		first = false
	}
	return lines.String()
}

func toInt(_ *renderer, of any, a arguments) any {
	switch v := of.(type) {
	case int, large:
		return v
	case string:
		if n, err := strconv.Atoi(strings.TrimSpace(v)); err == nil {
			return n
		}
		if x, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil && math.Abs(x) < 1<<53 {
			return int(x)
		}
	default:
		if x, _, ok := asNumber(of); ok && math.Abs(x) < 1<<53 {
			return int(x)
		}
	}
	return a.get(0, "default", 0)
}

func toFloat(_ *renderer, of any, a arguments) any {
	if s, ok := of.(string); ok {
		if x, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
			return x
		}
	}
	if x, _, ok := asNumber(of); ok {
		return x
	}
	return a.get(0, "default", 0.0)
}

func absolute(r *renderer, of any, _ arguments) any {
	switch v := of.(type) {
	case int:
		if v >= 0 {
			return v
		}
		return r.whole("*", -1, v)
	case float64:
		return math.Abs(v)
	}
	panic(r.failure("%s is no number", typeName(of)))
}

func round(r *renderer, of any, a arguments) any {
	x, _, ok := asNumber(of)
	digits, whole := a.get(0, "precision", 0).(int)
	if !ok || !whole {
		panic(r.failure("want a number and whole digits"))
	}
	scale := math.Pow(10, float64(digits))
	switch r.text(a.get(1, "method", "common")) {
	case "ceil":
		return math.Ceil(x*scale) / scale
	case "floor":
		return math.Floor(x*scale) / scale
	}
	return math.RoundToEven(x*scale) / scale
}

func sum(r *renderer, of any, a arguments) any {
	all := r.elements(of)
	total := a.get(1, "start", 0)
	for _, v := range all {
		if by := a.get(0, "attribute", nil); by != nil {
			v = r.path(v, by)
		}
		r.visit(1)
		total = r.arithmetic("+", total, v)
	}
	return total
}

func extreme(sign int) filter {
	return func(r *renderer, of any, _ arguments) any {
		all := r.elements(of)
		if len(all) == 0 {
			return undefined{"an item of an empty list"}
		}
		best := all[0]
		for _, v := range all[1:] {
			if r.compare(v, best)*sign > 0 {
				best = v
			}
		}
		return best
	}
}

// candidates are what map, select and their like go through: nothing of a value that is false.
func (r *renderer) candidates(of any) []any {
	if !truth(of) {
		return nil
	}
	return r.elements(of)
}

func mapped(r *renderer, of any, a arguments) any {
	all := r.candidates(of)
	defer r.deeper("filters are nested")()
	out := make([]any, len(all))
	by := a.get(-1, "attribute", nil)
	for i, v := range all {
		r.visit(1)
		switch {
		case by != nil:
			out[i] = r.path(v, by)
			if _, is := out[i].(undefined); is {
				out[i] = a.get(-1, "default", out[i])
			}
		case len(a.args) > 0 && filters[r.text(a.args[0])] != nil:
			out[i] = unmarked(filters[r.text(a.args[0])](r, v, arguments{a.args[1:], a.named}))
		default:
			panic(r.failure("want an attribute or a filter that is supported"))
		}
	}
	return &generator{out}
}

// chosen is the filter that keeps the items which a test accepts, or rejects. by says that the test is of an attribute.
func chosen(rejects, by bool) filter {
	return func(r *renderer, of any, a arguments) any {
		all := r.candidates(of)
		args := a.args
		var name any
		if by {
			if len(args) == 0 {
				panic(r.failure("want an attribute"))
			}
			name, args = args[0], args[1:]
		}
		out := []any{}
		for _, item := range all {
			r.visit(1)
			v := item
			if by {
				v = r.path(item, name)
			}
			ok := truth(v)
			if len(args) > 0 {
				test := tests[r.text(args[0])]
				if test == nil {
					panic(r.failure("the test %q is not supported", r.text(args[0])))
				}
				ok = test(r, v, args[1:])
			}
			if ok != rejects {
				out = append(out, item)
			}
		}
		return &generator{out}
	}
}

func attr(r *renderer, of any, a arguments) any {
	return r.get(of, r.text(a.get(0, "name", "")))
}
