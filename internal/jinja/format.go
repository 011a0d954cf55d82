package jinja

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// layoutSpec is how one value is formatted: by a direction of Python's % or by what follows the colon of a field.
type layoutSpec struct {
	fill, align, sign string // align is <, >, ^, or = for zeros after the sign; "" is the type's own
	alternate, commas bool
	width, precision  int // a precision of -1 is the type's own
	kind              string
}

var (
	direction = regexp.MustCompile(`%(?:\((\w+)\))?([-+ 0#]*)(\d*)(?:\.(\d+))?([a-zA-Z%])`)
	fieldSpec = regexp.MustCompile(`^(?:(.)?([<>^=]))?([-+ ]?)(#?)(0?)(\d*)(,?)(?:\.(\d+))?([a-zA-Z%]?)$`)
	fieldPart = regexp.MustCompile(`^(?:\.(\w+)|\[([^\]]+)\])`)
	fieldName = regexp.MustCompile(`^\w*`)
)

// formatFilter is Python's value % arguments.
func formatFilter(r *renderer, of any, a arguments) any {
	if len(a.args) > 0 && len(a.named.keys) > 0 {
		panic(r.failure("wants arguments by place or by name, not both"))
	}
	text := r.text(of)
	r.spend(len(text), 2)
	w, used := writer{r: r}, 0
	for {
		at := strings.IndexByte(text, '%')
		if at < 0 {
			break
		}
		m := direction.FindStringSubmatch(text[at:])
		if m == nil || !strings.HasPrefix(text[at:], m[0]) {
			panic(r.failure("%.20q is no direction", text[at:]))
		}
		w.write(text[:at])
		text = text[at+len(m[0]):]
		if m[5] == "%" {
			w.write("%")
			continue
		}
		v, ok := a.named.Get(m[1])
		if m[1] == "" {
			if ok = used < len(a.args); ok {
				v = a.args[used]
			}
			used++
		}
		if !ok {
			panic(r.failure("the text has more directions than arguments, such as %s", m[0]))
		}
		s := layoutSpec{fill: " ", align: ">", precision: countOf(m[4], -1), width: countOf(m[3], 0), kind: m[5],
			alternate: strings.Contains(m[2], "#")}
		switch {
		case strings.Contains(m[2], "-"):
			s.align = "<"
		case strings.Contains(m[2], "0") && m[5] != "s" && m[5] != "r":
			s.fill, s.align = "0", "="
		}
		for _, sign := range []string{" ", "+"} {
			if strings.Contains(m[2], sign) {
				s.sign = sign
			}
		}
		if x, float := v.(float64); float && strings.Contains("diu", s.kind) {
			v = int(x)
		}
		s.write(&w, v)
	}
	if used < len(a.args) {
		panic(r.failure("the text has fewer directions than arguments"))
	}
	w.write(text)
	return w.String()
}

// countOf reads digits; absent says what none are.
func countOf(digits string, absent int) int {
	if digits == "" {
		return absent
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n > mostBytes {
		return mostBytes // more than a rendering may write
	}
	return n
}

// formatMethod is Python's str.format.
func formatMethod(r *renderer, text string, args []any, named *Dict) any {
	r.spend(len(text), 2)
	w, next := writer{r: r}, 0
	for text != "" {
		at := strings.IndexAny(text, "{}")
		if at < 0 {
			break
		}
		w.write(text[:at])
		brace := text[at : at+1]
		if text = text[at+1:]; strings.HasPrefix(text, brace) {
			w.write(brace)
			text = text[1:]
			continue
		}
		field, rest, closed := strings.Cut(text, "}")
		if brace == "}" || !closed || strings.Contains(field, "{") {
			panic(r.failure("the field %.20q of the format is not closed, or holds another", brace+text))
		}
		text = rest
		r.formatField(&w, field, args, named, &next)
	}
	w.write(text)
	return w.String()
}

// formatField writes one field; next is the place of the next argument of fields without a name.
func (r *renderer) formatField(w *writer, field string, args []any, named *Dict, next *int) {
	path, spec, _ := strings.Cut(field, ":")
	path, conversion, _ := strings.Cut(path, "!")
	name := fieldName.FindString(path)
	place, err := strconv.Atoi(name)
	v, found := named.Get(name)
	if name == "" {
		place, err, *next = *next, nil, *next+1
	}
	if err == nil {
		v, found = indexed(args, place)
	}
	if !found {
		panic(r.failure("the format has no argument for {%s}", field))
	}
	for rest := path[len(name):]; rest != ""; {
		m := fieldPart.FindStringSubmatch(rest)
		if m == nil {
			panic(r.failure("the field {%s} cannot be read", field))
		}
		v, rest = r.path(v, m[1]+m[2]), rest[len(m[0]):]
	}
	switch conversion {
	case "r":
		v = r.representation(v)
	case "s":
		v = r.text(v)
	}
	m := fieldSpec.FindStringSubmatch(spec)
	if m == nil {
		panic(r.failure("the field {%s} cannot be read", field))
	}
	s := layoutSpec{fill: m[1], align: m[2], sign: m[3], alternate: m[4] != "", width: countOf(m[6], 0),
		commas: m[7] != "", precision: countOf(m[8], -1), kind: m[9]}
	if m[5] == "0" && s.align == "" {
		s.fill, s.align = "0", "="
	}
	s.write(w, v)
}

// write writes a value.
func (s layoutSpec) write(w *writer, v any) {
	sign, text := s.body(w, v)
	if s.align == "" {
		s.align = ">"
		if _, isText := v.(string); isText {
			s.align = "<"
		}
	}
	s.fill = cmp.Or(s.fill, " ")
	missing := s.width - utf8.RuneCountInString(sign+text)
	padding := w.r.repeat(s.fill, missing)
	switch s.align {
	case "<":
		w.write(sign + text + padding)
	case ">":
		w.write(padding + sign + text)
	case "=":
		w.write(sign + padding + text)
	default:
		half := max(missing, 0) / 2 * len(s.fill)
		w.write(padding[:half] + sign + text + padding[half:])
	}
}

// body returns a value's sign and the rest of it.
func (s layoutSpec) body(w *writer, v any) (sign, text string) {
	_, isText := v.(string)
	x, whole, isNumber := asNumber(v)
	_, isFloat := v.(float64)
	_, isTruth := v.(bool)
	switch {
	case s.kind == "s" || s.kind == "r" || s.kind == "" && (!isNumber || isTruth):
		if text = w.r.text(v); s.kind == "r" {
			text = w.r.representation(v)
		}
		if letters := w.r.runes(text); s.precision >= 0 && s.precision < len(letters) {
			text = string(letters[:s.precision])
		}
		return "", text
	case isText || !isNumber:
		panic(w.r.failure("the format %q wants a number, got %s", s.kind, typeName(v)))
	case s.kind == "" && isFloat && s.precision < 0:
		text = floatText(x)
	case strings.Contains("diuxXob", s.kind) && s.kind != "" && isFloat:
		panic(w.r.failure("the format %q wants a whole number", s.kind))
	case strings.Contains("xXob", s.kind) && whole && s.kind != "":
		text = s.inBase(integer(v))
	case strings.Contains("diu", s.kind) && !isFloat: // "" too
		if text = strconv.Itoa(integer(v)); !whole {
			text = w.r.text(v)
		}
	default:
		text = s.float(w, x)
	}
	if after, negative := strings.CutPrefix(text, "-"); negative {
		sign, text = "-", after
	} else {
		sign = strings.Trim(s.sign, "-")
	}
	if s.commas {
		text = grouped(text)
	}
	return sign, text
}

// inBase writes a whole number in another base.
func (s layoutSpec) inBase(n int) string {
	if s.alternate {
		return fmt.Sprintf(map[string]string{"x": "%#x", "X": "%#X", "o": "%O", "b": "%#b"}[s.kind], n)
	}
	return fmt.Sprintf("%"+s.kind, n)
}

// float writes a number with its digits after the point, or in all.
func (s layoutSpec) float(w *writer, x float64) string {
	digits, kind := s.precision, strings.ToLower(s.kind)
	if digits < 0 {
		digits = 6
	}
	w.r.spend(digits, 2)
	switch kind {
	case "f", "e":
		return strconv.FormatFloat(x, kind[0], digits, 64)
	case "g", "":
		return strconv.FormatFloat(x, 'g', max(digits, 1), 64)
	case "%":
		return strconv.FormatFloat(100*x, 'f', digits, 64) + "%"
	}
	panic(w.r.failure("the format %q is not supported", s.kind))
}

// grouped puts commas between the thousands of a number's whole part.
func grouped(text string) string {
	whole := text
	if end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		whole = text[:end]
	}
	var b strings.Builder
	for i, digit := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String() + text[len(whole):]
}
