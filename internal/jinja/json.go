package jinja

import (
	"fmt"
	"math"
	"sort"
	"strconv"
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
	case int:
		w.write(strconv.Itoa(v))
	case float64:
		w.write(jsonNumber(v))
	case large:
		w.write(string(v))
	case string:
		l.quote(w, v)
	case []any:
		l.group(w, "[", "]", len(v), depth, func(i int) { l.dump(w, v[i], depth+1) })
	case *Dict:
		keys := v.keys
		if l.sortsKeys {
			keys = append([]any{}, keys...)
			sort.SliceStable(keys, func(i, j int) bool { return w.r.text(keys[i]) < w.r.text(keys[j]) })
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

func jsonNumber(x float64) string {
	switch {
	case math.IsInf(x, 1):
		return "Infinity"
	case math.IsInf(x, -1):
		return "-Infinity"
	case math.IsNaN(x):
		return "NaN"
	}
	return floatText(x)
}

func (l layout) quote(w *writer, s string) {
	w.write(`"`)
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			w.write(`\` + string(r))
		case r == '\n':
			w.write(`\n`)
		case r == '\r':
			w.write(`\r`)
		case r == '\t':
			w.write(`\t`)
		case r == '\b':
			w.write(`\b`)
		case r == '\f':
			w.write(`\f`)
		case r < ' ':
			w.write(fmt.Sprintf(`\u%04x`, r))
		case l.ascii && r >= utf8.RuneSelf && r <= 0xffff:
			w.write(fmt.Sprintf(`\u%04x`, r))
		case l.ascii && r > 0xffff:
			r -= 0x10000
			w.write(fmt.Sprintf(`\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff))
		default:
			w.write(string(r))
		}
	}
	w.write(`"`)
}
