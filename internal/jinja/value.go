package jinja

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Dict is a mapping that keeps the order of its keys. The zero value is empty.
type Dict struct {
	keys   []any
	values map[any]any
}

// NewDict makes a mapping of keys and values in turn. The keys are texts.
func NewDict(pairs ...any) *Dict {
	d := &Dict{}
	for i := 0; i+1 < len(pairs); i += 2 {
		d.Set(pairs[i].(string), pairs[i+1])
	}
	return d
}

// Set sets a key's value. A new key is the last.
func (d *Dict) Set(key, value any) {
	if d.values == nil {
		d.values = map[any]any{}
	}
	if _, there := d.values[key]; !there {
		d.keys = append(d.keys, key)
	}
	d.values[key] = value
}

// Add sets all values of another mapping.
func (d *Dict) Add(other *Dict) {
	for _, k := range other.keys {
		d.Set(k, other.values[k])
	}
}

// Get returns a key's value. No list and no mapping is a key.
func (d *Dict) Get(key any) (any, bool) {
	if !hashable(key) {
		return nil, false
	}
	v, ok := d.values[key]
	return v, ok
}

// undefined is the value of a name that has none.
type undefined struct{ name string }

// namespace is an object whose attributes a template can set.
type namespace struct{ Dict }

// generator is what map, select and their like give: items that can be gone through once.
type generator struct{ left []any }

// function is a value that can be called.
type function func(r *renderer, args []any, named *Dict) any

// large is a whole number that has no place in 64 bits, in its digits. It can be written and compared.
type large string

// safeText is a text that the filters safe and escape have marked: + escapes what is joined to it. Only names and the
// operands of + see the mark, which tells nothing to anything else.
type safeText string

func unmarked(v any) any {
	if s, ok := v.(safeText); ok {
		return string(s)
	}
	return v
}

// joinMarked joins two texts of which one is marked.
func (r *renderer) joinMarked(a, b any) (joined safeText, ok bool) {
	for _, v := range []any{a, b} {
		switch v := v.(type) {
		case safeText:
			joined, ok = joined+v, true
		case string:
			joined += safeText(r.changed(escapeHTML, v))
		default:
			return "", false
		}
	}
	return safeText(r.joined(string(joined), "")), ok
}

// From decodes JSON. Mappings keep the order of their keys.
func From(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := decode(d, 0)
	if err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return v, nil
}

func decode(d *json.Decoder, depth int) (any, error) {
	if depth > mostDepth {
		return nil, fmt.Errorf("the JSON is nested more than %d deep", mostDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
			return int(n), nil
		}
		if !strings.ContainsAny(t.String(), ".eE") {
			return large(t.String()), nil
		}
		return t.Float64()
	case json.Delim:
		if t == '[' {
			list := []any{}
			for d.More() {
				v, err := decode(d, depth+1)
				if err != nil {
					return nil, err
				}
				list = append(list, v)
			}
			_, err := d.Token()
			return list, err
		}
		dict := &Dict{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decode(d, depth+1)
			if err != nil {
				return nil, err
			}
			dict.Set(key, v)
		}
		_, err := d.Token()
		return dict, err
	}
	return t, nil
}

// Texts returns a value of From with change applied to every text in it, keys included.
func Texts(v any, change func(string) string) any {
	switch v := v.(type) {
	case string:
		return change(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = Texts(e, change)
		}
		return out
	case *Dict:
		out := &Dict{}
		for _, k := range v.keys {
			out.Set(Texts(k, change), Texts(v.values[k], change))
		}
		return out
	}
	return v
}

// truth is a value's truth in Python.
func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case *Dict:
		return len(v.keys) > 0
	}
	return true
}

// text writes a value as Python's str does.
func (r *renderer) text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	if _, ok := v.(undefined); ok {
		return ""
	}
	return r.representation(v)
}

// representation writes a value as Python's repr does.
func (r *renderer) representation(v any) string {
	w := writer{r: r}
	w.represent(v)
	return w.String()
}

// represent writes a value as Python's repr does.
func (w *writer) represent(v any) {
	w.r.visit(1)
	onOneLine := layout{item: ", "}
	switch v := v.(type) {
	case nil:
		w.write("None")
	case bool:
		w.write(title(strconv.FormatBool(v)))
	case int, float64, large:
		w.write(numberText(v))
	case string:
		w.r.spend(len(v), 1)
		w.write(quote(v))
	case []any:
		onOneLine.group(w, "[", "]", len(v), 0, func(i int) { w.represent(v[i]) })
	case *Dict:
		onOneLine.group(w, "{", "}", len(v.keys), 0, func(i int) {
			w.represent(v.keys[i])
			w.write(": ")
			w.represent(v.values[v.keys[i]])
		})
	case undefined:
		w.write("Undefined")
	default:
		w.write("<" + typeName(v) + ">")
	}
}

// numberText writes a number as Python does.
func numberText(v any) string {
	if x, float := v.(float64); float {
		return floatText(x)
	}
	return fmt.Sprint(v)
}

// floatText writes a number as Python does.
func floatText(x float64) string {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return strings.ToLower(strings.TrimPrefix(fmt.Sprint(x), "+"))
	}
	if abs := math.Abs(x); x != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.FormatFloat(x, 'e', -1, 64)
	}
	s := strconv.FormatFloat(x, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// quote writes a string as Python's repr does.
func quote(s string) string {
	mark := "'"
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		mark = `"`
	}
	var b strings.Builder
	b.WriteString(mark)
	for _, r := range s {
		switch {
		case string(r) == mark || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteString(escaped(r))
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa1 || r == 0xad:
			fmt.Fprintf(&b, `\x%02x`, r)
		case !strconv.IsPrint(r) && r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		case !strconv.IsPrint(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + mark
}

// escaped is a quote, a backslash or a control character as Go, Python and JSON write it between quotes.
func escaped(r rune) string {
	quoted := strconv.Quote(string(r))
	return quoted[1 : len(quoted)-1]
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "None"
	case bool:
		return "a truth value"
	case int, float64, large:
		return "a number"
	case string:
		return "text"
	case []any:
		return "a list"
	case *Dict:
		return "a mapping"
	case undefined:
		return "undefined"
	case *namespace:
		return "a namespace"
	case loop:
		return "a loop"
	case *generator:
		return "a generator"
	}
	return "a function"
}

// asNumber returns a number or truth value as a float.
func asNumber(v any) (x float64, whole bool, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true, true
		}
		return 0, true, true
	case int:
		return float64(v), true, true
	case float64:
		return v, false, true
	case large:
		x, _ := strconv.ParseFloat(string(v), 64) // infinite beyond its range, as in comparisons of Python's floats
		return x, false, true
	}
	return 0, false, false
}

// equal compares as Python's == does.
func (r *renderer) equal(a, b any) bool {
	r.visit(1)
	if x, ok := a.(large); ok {
		if y, also := b.(large); also {
			return x == y
		}
	}
	if x, _, ok := asNumber(a); ok {
		y, _, also := asNumber(b)
		return also && x == y
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case undefined:
		_, ok := b.(undefined)
		return ok
	case string:
		other, ok := b.(string)
		return ok && r.sameText(a, other)
	case *namespace:
		return a == b
	case []any:
		other, ok := b.([]any)
		if !ok {
			return false
		}
		defer r.deeper("a value is nested")()
		return slices.EqualFunc(a, other, r.equal)
	case *Dict:
		other, ok := b.(*Dict)
		if !ok || len(a.keys) != len(other.keys) {
			return false
		}
		defer r.deeper("a value is nested")()
		for _, k := range a.keys {
			if v, there := other.Get(k); !there || !r.equal(a.values[k], v) {
				return false
			}
		}
		return true
	}
	return false
}

func (r *renderer) sameText(a, b string) bool {
	r.spend(min(len(a), len(b)), 1)
	return a == b
}

// compare orders numbers, texts and lists.
func (r *renderer) compare(a, b any) int {
	r.visit(1)
	if x, _, ok := asNumber(a); ok {
		if y, _, also := asNumber(b); also {
			return cmp.Compare(x, y)
		}
	}
	if x, ok := a.(string); ok {
		if y, also := b.(string); also {
			r.spend(min(len(x), len(y)), 1)
			return strings.Compare(x, y)
		}
	}
	if x, ok := a.([]any); ok {
		if y, also := b.([]any); also {
			defer r.deeper("a value is nested")()
			for i := range min(len(x), len(y)) {
				if !r.equal(x[i], y[i]) {
					return r.compare(x[i], y[i])
				}
			}
			return len(x) - len(y)
		}
	}
	panic(r.failure("%s and %s have no order", typeName(a), typeName(b)))
}

// elements returns what a loop over a value goes through.
func (r *renderer) elements(v any) []any {
	switch v := v.(type) {
	case []any:
		return v
	case *Dict:
		return v.keys
	case string:
		r.visit(len(v))
		out := make([]any, 0, len(v))
		for _, c := range v {
			out = append(out, string(c))
		}
		return out
	case *generator:
		all := v.left
		v.left = nil
		return all
	case undefined:
		return nil
	}
	panic(r.failure("%s cannot be looped over", typeName(v)))
}

func iterable(v any) bool {
	switch v.(type) {
	case []any, *Dict, string, undefined, *generator:
		return true
	}
	return false
}
