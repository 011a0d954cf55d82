package jinja

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

// method is a method of a value.
type method[T any] func(of T, args []any, named *Dict) (any, error)

func bound[T any](m method[T], of T) function {
	return func(_ *renderer, args []any, named *Dict) (any, error) { return m(of, args, named) }
}

// argument returns an argument by its place, or nil.
func argument(args []any, i int) any {
	if i < len(args) {
		return args[i]
	}
	return nil
}

// strip removes characters at the ends of a text: white space, or those of chars.
func strip(s string, chars any, left, right bool) (any, error) {
	drop := unicode.IsSpace
	switch c := chars.(type) {
	case nil:
	case string:
		drop = func(r rune) bool { return strings.ContainsRune(c, r) }
	default:
		return nil, fmt.Errorf("characters to strip are %s", typeName(chars))
	}
	if left {
		s = strings.TrimLeftFunc(s, drop)
	}
	if right {
		s = strings.TrimRightFunc(s, drop)
	}
	return s, nil
}

var textMethods map[string]method[string]

func init() {
	plain := func(f func(string) string) method[string] {
		return func(s string, _ []any, _ *Dict) (any, error) { return f(s), nil }
	}
	textMethods = map[string]method[string]{
		"strip":  func(s string, a []any, _ *Dict) (any, error) { return strip(s, argument(a, 0), true, true) },
		"lstrip": func(s string, a []any, _ *Dict) (any, error) { return strip(s, argument(a, 0), true, false) },
		"rstrip": func(s string, a []any, _ *Dict) (any, error) { return strip(s, argument(a, 0), false, true) },
		"split":  split(false), "rsplit": split(true),
		"upper": plain(strings.ToUpper), "lower": plain(strings.ToLower), "title": plain(title),
		"capitalize": plain(capitalize),
		"startswith": affix(strings.HasPrefix), "endswith": affix(strings.HasSuffix),
		"removeprefix": cut(strings.TrimPrefix), "removesuffix": cut(strings.TrimSuffix),
		"replace": func(s string, a []any, _ *Dict) (any, error) { return replaced(s, a) },
		"join": func(s string, a []any, _ *Dict) (any, error) {
			return join(&renderer{}, argument(a, 0), arguments{[]any{s}, &Dict{}})
		},
		"find":  position,
		"count": counted,
		"splitlines": func(s string, _ []any, _ *Dict) (any, error) {
			out := []any{}
			for line := range strings.Lines(s) {
				out = append(out, strings.TrimRight(line, "\r\n"))
			}
			return out, nil
		},
		"isdigit": everyRune(unicode.IsDigit), "isalpha": everyRune(unicode.IsLetter),
		"isspace": everyRune(unicode.IsSpace),
	}
}

func everyRune(of func(rune) bool) method[string] {
	return func(s string, _ []any, _ *Dict) (any, error) {
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !of(r) }) < 0, nil
	}
}

func split(fromRight bool) method[string] {
	return func(s string, a []any, named *Dict) (any, error) {
		by, most := arguments{a, named}.get(0, "sep", nil), -1
		if n, ok := (arguments{a, named}).get(1, "maxsplit", nil).(int); ok && n >= 0 {
			most = n
		}
		var parts []string
		switch by := by.(type) {
		case nil:
			parts = strings.Fields(s)
			if most >= 0 && len(parts) > most+1 {
				return nil, errors.New("split at white space with a limit is not supported")
			}
		case string:
			if by == "" {
				return nil, errors.New("split at an empty text")
			}
			parts = strings.Split(s, by)
			if n := len(parts); most >= 0 && n > most+1 {
				if fromRight {
					parts = append([]string{strings.Join(parts[:n-most], by)}, parts[n-most:]...)
				} else {
					parts = append(slices.Clone(parts[:most]), strings.Join(parts[most:], by))
				}
			}
		default:
			return nil, fmt.Errorf("split at %s", typeName(by))
		}
		out := make([]any, len(parts))
		for i, p := range parts {
			out[i] = p
		}
		return out, nil
	}
}

func affix(has func(s, part string) bool) method[string] {
	return func(s string, a []any, _ *Dict) (any, error) {
		parts, ok := argument(a, 0).([]any)
		if !ok {
			parts = []any{argument(a, 0)}
		}
		for _, p := range parts {
			part, ok := p.(string)
			if !ok {
				return nil, fmt.Errorf("startswith and endswith want text, got %s", typeName(p))
			}
			if has(s, part) {
				return true, nil
			}
		}
		return false, nil
	}
}

func cut(f func(s, part string) string) method[string] {
	return func(s string, a []any, _ *Dict) (any, error) { return f(s, text(argument(a, 0))), nil }
}

func replaced(s string, a []any) (any, error) {
	old, fresh, n := text(argument(a, 0)), text(argument(a, 1)), -1
	if most, ok := argument(a, 2).(int); ok {
		n = most
	}
	if size := len(s) + strings.Count(s, old)*len(fresh); size > mostOutput {
		return nil, errOutput
	}
	return strings.Replace(s, old, fresh, n), nil
}

func position(s string, a []any, _ *Dict) (any, error) {
	i := strings.Index(s, text(argument(a, 0)))
	if i < 0 {
		return -1, nil
	}
	return len([]rune(s[:i])), nil
}

func counted(s string, a []any, _ *Dict) (any, error) {
	return strings.Count(s, text(argument(a, 0))), nil
}

var dictMethods = map[string]method[*Dict]{
	"get": func(d *Dict, a []any, named *Dict) (any, error) {
		if v, ok := d.Get(argument(a, 0)); hashable(argument(a, 0)) && ok {
			return v, nil
		}
		return arguments{a, named}.get(1, "default", nil), nil
	},
	"items":  func(d *Dict, _ []any, _ *Dict) (any, error) { return pairs(d), nil },
	"keys":   func(d *Dict, _ []any, _ *Dict) (any, error) { return slices.Clone(d.keys), nil },
	"values": func(d *Dict, _ []any, _ *Dict) (any, error) { return valuesOf(d), nil },
}

func valuesOf(d *Dict) []any {
	out := make([]any, len(d.keys))
	for i, k := range d.keys {
		out[i] = d.values[k]
	}
	return out
}

var listMethods = map[string]method[[]any]{
	"index": func(l []any, a []any, _ *Dict) (any, error) {
		i := slices.IndexFunc(l, func(v any) bool { return equal(v, argument(a, 0)) })
		if i < 0 {
			return nil, errors.New("the value is not in the list")
		}
		return i, nil
	},
	"count": func(l []any, a []any, _ *Dict) (any, error) {
		n := 0
		for _, v := range l {
			if equal(v, argument(a, 0)) {
				n++
			}
		}
		return n, nil
	},
}

// globals are the functions that templates may call.
var globals = map[string]function{
	"raise_exception": func(_ *renderer, a []any, _ *Dict) (any, error) {
		return nil, fmt.Errorf("%w: %s", ErrRaised, text(argument(a, 0)))
	},
	"namespace": func(_ *renderer, a []any, named *Dict) (any, error) {
		ns := &namespace{}
		if d, ok := argument(a, 0).(*Dict); ok {
			for _, k := range d.keys {
				ns.Set(k, d.values[k])
			}
		}
		for _, k := range named.keys {
			ns.Set(k, named.values[k])
		}
		return ns, nil
	},
	"dict": func(_ *renderer, _ []any, named *Dict) (any, error) { return named, nil },
	"range": func(r *renderer, a []any, _ *Dict) (any, error) {
		var n [3]int
		n[2] = 1
		for i, v := range a {
			whole, ok := v.(int)
			if i > 2 || !ok {
				return nil, errors.New("range wants up to three whole numbers")
			}
			n[i] = whole
		}
		if len(a) == 1 {
			n[0], n[1] = 0, n[0]
		}
		if n[2] == 0 || (n[1]-n[0])/n[2] > mostItems {
			return nil, fmt.Errorf("range gives more than %d numbers", mostItems)
		}
		out := []any{}
		for i := n[0]; n[2] > 0 && i < n[1] || n[2] < 0 && i > n[1]; i += n[2] {
			out = append(out, i)
		}
		return out, r.step()
	},
	"strftime_now": func(r *renderer, a []any, _ *Dict) (any, error) { return strftime(r.now, text(argument(a, 0))) },
}

// strftime writes a time in Python's form.
func strftime(t time.Time, form string) (any, error) {
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
			b.WriteString(t.Format(layout))
		} else if form[i] == '%' {
			b.WriteByte('%')
		} else {
			return nil, fmt.Errorf("strftime_now: %%%c is not supported", form[i])
		}
	}
	return b.String(), nil
}
