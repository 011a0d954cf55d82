package jinja

import (
	"fmt"
	"math"
	"sort"
	"strings"
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
func (l layout) dump(b *strings.Builder, v any, depth int) error {
	if depth > mostDepth {
		return fmt.Errorf("tojson: the value is nested too deeply")
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		fmt.Fprintf(b, "%t", v)
	case int:
		fmt.Fprintf(b, "%d", v)
	case float64:
		b.WriteString(jsonNumber(v))
	case string:
		l.quote(b, v)
	case []any:
		return l.group(b, "[", "]", len(v), depth, func(i int) error { return l.dump(b, v[i], depth+1) })
	case *Dict:
		keys := v.keys
		if l.sortsKeys {
			keys = append([]any{}, keys...)
			sort.SliceStable(keys, func(i, j int) bool { return text(keys[i]) < text(keys[j]) })
		}
		return l.group(b, "{", "}", len(keys), depth, func(i int) error {
			key := keys[i]
			if _, ok := key.(string); !ok {
				var number strings.Builder
				if err := l.dump(&number, key, depth+1); err != nil {
					return err
				}
				key = number.String()
			}
			l.quote(b, key.(string))
			b.WriteString(l.key)
			return l.dump(b, v.values[keys[i]], depth+1)
		})
	default:
		return fmt.Errorf("tojson: %s is no JSON value", typeName(v))
	}
	return nil
}

// group writes a list or a mapping.
func (l layout) group(b *strings.Builder, opening, closing string, n, depth int, write func(i int) error) error {
	b.WriteString(opening)
	for i := range n {
		if i > 0 {
			b.WriteString(l.item)
		}
		if l.lines {
			b.WriteString("\n" + strings.Repeat(l.indent, depth+1))
		}
		if err := write(i); err != nil {
			return err
		}
		if b.Len() > mostOutput {
			return errOutput
		}
	}
	if l.lines && n > 0 {
		b.WriteString("\n" + strings.Repeat(l.indent, depth))
	}
	b.WriteString(closing)
	return nil
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

func (l layout) quote(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\f':
			b.WriteString(`\f`)
		case r < ' ':
			fmt.Fprintf(b, `\u%04x`, r)
		case l.ascii && r >= utf8.RuneSelf && r <= 0xffff:
			fmt.Fprintf(b, `\u%04x`, r)
		case l.ascii && r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}
