package jinja

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// layout is how Python's json.dumps writes.
type layout struct {
	indent           string // of one level; "" = one line
	lines            bool
	item, key        string // separators
	ascii, sortsKeys bool
}

// dump writes a value as json.dumps does.
func (l layout) dump(w *writer, v any, depth int) {
	w.r.visit(1)
	switch v := v.(type) {
	case nil:
		w.write("null")
	case bool:
		w.write(strconv.FormatBool(v))
	case int, float64, large:
		text := numberText(v)
		w.write(cmp.Or(map[string]string{"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[text], text))
	case string:
		l.quote(w, v)
	case []any:
		l.group(w, "[", "]", len(v), depth, func(i int) { l.dump(w, v[i], depth+1) })
	case *Dict:
		keys := v.keys
		if l.sortsKeys {
			keys = slices.Clone(keys)
			slices.SortStableFunc(keys, func(a, b any) int { return strings.Compare(w.r.text(a), w.r.text(b)) })
		}
		l.group(w, "{", "}", len(keys), depth, func(i int) {
			key := keys[i]
			if _, ok := key.(string); !ok {
				number := writer{r: w.r}
				l.dump(&number, key, depth+1)
				key = number.String()
			}
			l.quote(w, key.(string))
			w.write(l.key)
			l.dump(w, v.values[keys[i]], depth+1)
		})
	default:
		panic(w.r.failure("tojson: %s is no JSON value", typeName(v)))
	}
}

// group writes a list or a mapping.
func (l layout) group(w *writer, opening, closing string, n, depth int, write func(i int)) {
	defer w.r.deeper("a value is nested")()
	w.write(opening)
	for i := range n {
		if i > 0 {
			w.write(l.item)
		}
		if l.lines {
			w.write("\n" + w.r.repeat(l.indent, depth+1))
		}
		write(i)
	}
	if l.lines && n > 0 {
		w.write("\n" + w.r.repeat(l.indent, depth))
	}
	w.write(closing)
}

func (l layout) quote(w *writer, s string) {
	w.write(`"`)
	for _, r := range s {
		switch {
		case strings.ContainsRune("\"\\\n\r\t\b\f", r):
			w.write(escaped(r))
		case r > 0xffff && l.ascii:
			high, low := utf16.EncodeRune(r)
			w.write(fmt.Sprintf(`\u%04x\u%04x`, high, low))
		case r < ' ' || r >= utf8.RuneSelf && l.ascii:
			w.write(fmt.Sprintf(`\u%04x`, r))
		default:
			w.write(string(r))
		}
	}
	w.write(`"`)
}
