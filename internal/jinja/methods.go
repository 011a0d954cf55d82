package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// method is a method of a value.
type method[T any] func(r *renderer, of T, args []any, named *Dict) any

func bound[T any](m method[T], of T) function {
	return func(r *renderer, args []any, named *Dict) any { return m(r, of, args, named) }
}

// argument returns an argument by its place, or nil.
func argument(args []any, i int) any {
	if i < len(args) {
		return args[i]
	}
	return nil
}

// strip removes characters at the ends of a text: white space, or those of chars.
func (r *renderer) strip(s string, chars any, left, right bool) any {
	r.spend(len(s), 1)
	drop := unicode.IsSpace
	switch c := chars.(type) {
	case nil:
	case string:
		r.visit(len(c))
		set := map[rune]bool{}
		for _, one := range c {
			set[one] = true
		}
		drop = func(r rune) bool { return set[r] }
	default:
		panic(r.failure("characters to strip are %s", typeName(chars)))
	}
	if left {
		s = strings.TrimLeftFunc(s, drop)
	}
	if right {
		s = strings.TrimRightFunc(s, drop)
	}
	return s
}

var textMethods map[string]method[string]

func init() {
	plain := func(f func(string) string) method[string] {
		return func(r *renderer, s string, _ []any, _ *Dict) any { return r.changed(f, s) }
	}
	stripped := func(left, right bool) method[string] {
		return func(r *renderer, s string, a []any, _ *Dict) any {
			return r.strip(s, argument(a, 0), left, right)
		}
	}
	textMethods = map[string]method[string]{
		"strip":  stripped(true, true),
		"lstrip": stripped(true, false),
		"rstrip": stripped(false, true),
		"split":  split(false), "rsplit": split(true),
		"upper": plain(strings.ToUpper), "lower": plain(strings.ToLower), "title": plain(title),
		"capitalize": plain(capitalize),
		"startswith": affix(strings.HasPrefix), "endswith": affix(strings.HasSuffix),
		"removeprefix": cut(strings.TrimPrefix), "removesuffix": cut(strings.TrimSuffix),
		"replace": func(r *renderer, s string, a []any, _ *Dict) any { return r.replaced(s, a) },
		"join": func(r *renderer, s string, a []any, _ *Dict) any {
			return join(r, argument(a, 0), arguments{[]any{s}, &Dict{}})
		},
		"find": position, "format": formatMethod,
		"count": counted,
		"splitlines": func(r *renderer, s string, _ []any, _ *Dict) any {
			r.spend(len(s), 1)
			r.visit(strings.Count(s, "\n") + 1)
			out := []any{}
			for line := range strings.Lines(s) {
				out = append(out, strings.TrimRight(line, "\r\n"))
			}
			return out
		},
		"isdigit": everyRune(unicode.IsDigit), "isalpha": everyRune(unicode.IsLetter),
		"isspace": everyRune(unicode.IsSpace),
	}
}

func everyRune(of func(rune) bool) method[string] {
	return func(r *renderer, s string, _ []any, _ *Dict) any {
		r.spend(len(s), 1)
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !of(r) }) < 0
	}
}

func split(fromRight bool) method[string] {
	return func(r *renderer, s string, a []any, named *Dict) any {
		r.spend(len(s), 2)
		by, most := arguments{a, named}.get(0, "sep", nil), -1
		if n, ok := (arguments{a, named}).get(1, "maxsplit", nil).(int); ok && n >= 0 {
			most = n
		}
		var parts []string
		switch by := by.(type) {
		case nil:
			r.visit(len(s)/2 + 1)
			parts = strings.Fields(s)
			if most >= 0 && len(parts) > most+1 {
				panic(r.failure("split at white space with a limit is not supported"))
			}
		case string:
			if by == "" {
				panic(r.failure("split at an empty text"))
			}
			r.visit(strings.Count(s, by) + 1)
			parts = strings.Split(s, by)
			if n := len(parts); most >= 0 && n > most+1 {
				if fromRight {
					parts = append([]string{strings.Join(parts[:n-most], by)}, parts[n-most:]...)
				} else {
					parts = append(slices.Clone(parts[:most]), strings.Join(parts[most:], by))
				}
			}
		default:
			panic(r.failure("split at %s", typeName(by)))
		}
		out := make([]any, len(parts))
		for i, p := range parts {
			out[i] = p
		}
		return out
	}
}

func affix(has func(s, part string) bool) method[string] {
	return func(r *renderer, s string, a []any, _ *Dict) any {
		parts, ok := argument(a, 0).([]any)
		if !ok {
			parts = []any{argument(a, 0)}
		}
		for _, p := range parts {
			r.visit(1)
			part, ok := p.(string)
			if !ok {
				panic(r.failure("startswith and endswith want text, got %s", typeName(p)))
			}
			r.spend(min(len(s), len(part)), 1)
			if has(s, part) {
				return true
			}
		}
		return false
	}
}

func cut(f func(s, part string) string) method[string] {
	return func(r *renderer, s string, a []any, _ *Dict) any {
		part := r.text(argument(a, 0))
		r.spend(min(len(s), len(part)), 1)
		return f(s, part)
	}
}

func (r *renderer) replaced(s string, a []any) any {
	old, fresh, n := r.text(argument(a, 0)), r.text(argument(a, 1)), -1
	if most, ok := argument(a, 2).(int); ok {
		n = most
	}
	r.spend(len(s), 2)
	r.spend(len(fresh), strings.Count(s, old))
	return strings.Replace(s, old, fresh, n)
}

func position(r *renderer, s string, a []any, _ *Dict) any {
	r.spend(len(s), 2)
	i := strings.Index(s, r.text(argument(a, 0)))
	if i < 0 {
		return -1
	}
	return utf8.RuneCountInString(s[:i])
}

func counted(r *renderer, s string, a []any, _ *Dict) any {
	r.spend(len(s), 1)
	return strings.Count(s, r.text(argument(a, 0)))
}

var dictMethods = map[string]method[*Dict]{
	"get": func(r *renderer, d *Dict, a []any, named *Dict) any {
		if v, ok := d.Get(r.key(argument(a, 0))); ok {
			return v
		}
		return arguments{a, named}.get(1, "default", nil)
	},
	"items": func(r *renderer, d *Dict, _ []any, _ *Dict) any { return r.pairs(d) },
	"keys": func(r *renderer, d *Dict, _ []any, _ *Dict) any {
		r.visit(len(d.keys))
		return slices.Clone(d.keys)
	},
	"values": func(r *renderer, d *Dict, _ []any, _ *Dict) any {
		r.visit(len(d.keys))
		out := make([]any, len(d.keys))
		for i, k := range d.keys {
			out[i] = d.values[k]
		}
		return out
	},
}

var listMethods = map[string]method[[]any]{
	"index": func(r *renderer, l []any, a []any, _ *Dict) any {
		i := slices.IndexFunc(l, func(v any) bool { return r.equal(v, argument(a, 0)) })
		if i < 0 {
			panic(r.failure("the value is not in the list"))
		}
		return i
	},
	"count": func(r *renderer, l []any, a []any, _ *Dict) any {
		n := 0
		for _, v := range l {
			if r.equal(v, argument(a, 0)) {
				n++
			}
		}
		return n
	},
}

// mostReason bounds the bytes of the reason for which a template refuses a conversation.
const mostReason = 4096

// globals are the functions that templates may call.
var globals = map[string]function{
	"raise_exception": func(r *renderer, a []any, _ *Dict) any {
		why := r.text(argument(a, 0))
		panic(r.failure("the template refuses the conversation: %s", why[:min(len(why), mostReason)]))
	},
	"namespace": func(r *renderer, a []any, named *Dict) any {
		ns := &namespace{}
		if d, ok := argument(a, 0).(*Dict); ok {
			r.visit(len(d.keys))
			ns.Add(d)
		}
		ns.Add(named)
		return ns
	},
	"dict": func(_ *renderer, _ []any, named *Dict) any { return named },
	"range": func(r *renderer, a []any, _ *Dict) any {
		var n [3]int
		n[2] = 1
		for i, v := range a {
			whole, ok := v.(int)
			if i > 2 || !ok {
				panic(r.failure("range wants up to three whole numbers"))
			}
			n[i] = whole
		}
		if len(a) == 1 {
			n[0], n[1] = 0, n[0]
		}
		from, to, by := n[0], n[1], n[2]
		if by == 0 {
			panic(r.failure("range has the step 0"))
		}
		out := []any{}
		for i := from; by > 0 && i < to || by < 0 && i > to; {
			r.visit(1)
			out = append(out, i)
			next := i + by
			if (next > i) != (by > 0) { // beyond the largest number
				break
			}
			i = next
		}
		return out
	},
	"strftime_now": func(r *renderer, a []any, _ *Dict) any { return r.strftime(r.text(argument(a, 0))) },
}

// strftime writes the time in Python's form.
func (r *renderer) strftime(form string) any {
	r.spend(len(form), 5)
	layouts := map[byte]string{'d': "02", 'b': "Jan", 'B': "January", 'Y': "2006", 'm': "01", 'y': "06", 'H': "15",
		'M': "04", 'S': "05", 'A': "Monday", 'a': "Mon", 'j': "002", 'I': "03", 'p': "PM"}
	var b strings.Builder
	for i := 0; i < len(form); i++ {
		if form[i] != '%' || i+1 == len(form) {
			b.WriteByte(form[i])
			continue
		}
		i++
		if layout, ok := layouts[form[i]]; ok {
			b.WriteString(r.now.Format(layout))
		} else if form[i] == '%' {
			b.WriteByte('%')
		} else {
			panic(r.failure("strftime_now: %%%c is not supported", form[i]))
		}
	}
	return b.String()
}
