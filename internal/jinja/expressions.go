package jinja

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

func (e literal) value(*renderer, *scope) (any, error) { return e.is, nil }

func (e nameExpr) value(r *renderer, s *scope) (any, error) {
	if v, ok := s.find(e.name); ok {
		return v, nil
	}
	if e.name == "strftime_now" && r.now.IsZero() {
		return undefined(e), nil
	}
	if f, ok := globals[e.name]; ok {
		return f, nil
	}
	return undefined(e), nil
}

// each evaluates expressions.
func each(r *renderer, s *scope, all []expression) ([]any, error) {
	out := make([]any, len(all))
	for i, e := range all {
		v, err := e.value(r, s)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, r.step()
}

func (e listExpr) value(r *renderer, s *scope) (any, error) {
	out, err := each(r, s, e.of)
	return out, err
}

func (e dictExpr) value(r *renderer, s *scope) (any, error) {
	keys, err := each(r, s, e.keys)
	if err != nil {
		return nil, err
	}
	values, err := each(r, s, e.values)
	if err != nil {
		return nil, err
	}
	d := &Dict{}
	for i, k := range keys {
		if !hashable(k) {
			return nil, fmt.Errorf("%s cannot be a key", typeName(k))
		}
		d.Set(k, values[i])
	}
	return d, nil
}

// hashable reports whether a value can be a key.
func hashable(v any) bool {
	switch v.(type) {
	case nil, bool, int, float64, string:
		return true
	}
	return false
}

func (e attribute) value(r *renderer, s *scope) (any, error) {
	of, err := e.of.value(r, s)
	if err == nil {
		of, err = get(of, e.name)
	}
	return of, at(e.line, err)
}

// get returns an attribute: a method, or a key's value.
func get(of any, name string) (any, error) {
	switch of := of.(type) {
	case undefined:
		return nil, fmt.Errorf("%q is undefined", of.name)
	case *namespace:
		if v, ok := of.Get(name); ok {
			return v, nil
		}
	case *Dict:
		if m, ok := dictMethods[name]; ok {
			return bound(m, of), nil
		}
		if v, ok := of.Get(name); ok {
			return v, nil
		}
	case string:
		if m, ok := textMethods[name]; ok {
			return bound(m, of), nil
		}
	case []any:
		if m, ok := listMethods[name]; ok {
			return bound(m, of), nil
		}
	}
	return undefined{name}, nil
}

func (e indexExpr) value(r *renderer, s *scope) (any, error) {
	of, err := e.of.value(r, s)
	if err != nil {
		return nil, at(e.line, err)
	}
	with, err := e.with.value(r, s)
	if err != nil {
		return nil, at(e.line, err)
	}
	if b, ok := with.(bool); ok {
		with = map[bool]int{true: 1}[b]
	}
	switch of := of.(type) {
	case undefined:
		return nil, at(e.line, fmt.Errorf("%q is undefined", of.name))
	case *Dict:
		if v, ok := of.Get(with); hashable(with) && ok {
			return v, nil
		}
	case string, []any:
		items, err := elements(of)
		if err != nil {
			return nil, at(e.line, err)
		}
		if i, ok := with.(int); ok {
			if i < 0 {
				i += len(items)
			}
			if i >= 0 && i < len(items) {
				return items[i], nil
			}
			return undefined{fmt.Sprint(with)}, nil
		}
	}
	if name, ok := with.(string); ok {
		v, err := get(of, name)
		return v, at(e.line, err)
	}
	return undefined{text(with)}, nil
}

func (e sliceExpr) value(r *renderer, s *scope) (any, error) {
	of, err := e.of.value(r, s)
	if err != nil {
		return nil, at(e.line, err)
	}
	var bounds [3]*int
	for i, part := range []expression{e.from, e.to, e.step} {
		if part == nil {
			continue
		}
		v, err := part.value(r, s)
		if err != nil {
			return nil, at(e.line, err)
		}
		if n, ok := v.(int); ok {
			bounds[i] = &n
		} else if v != nil {
			return nil, at(e.line, fmt.Errorf("a slice has %s for a bound", typeName(v)))
		}
	}
	if _, is := of.(undefined); is {
		return nil, at(e.line, fmt.Errorf("%q is undefined", of.(undefined).name))
	}
	items, err := elements(of)
	if err != nil {
		return nil, at(e.line, err)
	}
	picked, err := sliced(items, bounds[0], bounds[1], bounds[2])
	if err != nil {
		return nil, at(e.line, err)
	}
	if _, is := of.(string); is {
		var b strings.Builder
		for _, c := range picked {
			b.WriteString(c.(string))
		}
		return b.String(), nil
	}
	return picked, r.step()
}

// sliced is Python's items[from:to:step].
func sliced(items []any, from, to, step *int) ([]any, error) {
	by, n := 1, len(items)
	if step != nil {
		by = *step
	}
	if by == 0 {
		return nil, errors.New("a slice has the step 0")
	}
	first, end, least, most := 0, n, 0, n
	if by < 0 {
		first, end, least, most = n-1, -1, -1, n-1
	}
	bound := func(p *int, otherwise int) int {
		if p == nil {
			return otherwise
		}
		i := *p
		if i < 0 {
			i += n
		}
		return min(max(i, least), most)
	}
	out := []any{}
	last := bound(to, end)
	for i := bound(from, first); by > 0 && i < last || by < 0 && i > last; i += by {
		out = append(out, items[i])
	}
	return out, nil
}

func (e callExpr) value(r *renderer, s *scope) (any, error) {
	of, err := e.of.value(r, s)
	if err != nil {
		return nil, at(e.line, err)
	}
	f, ok := of.(function)
	if u, is := of.(undefined); is {
		return nil, at(e.line, fmt.Errorf("%q is undefined", u.name))
	}
	if !ok {
		return nil, at(e.line, fmt.Errorf("%s cannot be called", typeName(of)))
	}
	args, named, err := given(r, s, e.args, e.names, e.named)
	if err != nil {
		return nil, at(e.line, err)
	}
	v, err := f(r, args, named)
	return v, at(e.line, err)
}

// given evaluates arguments.
func given(r *renderer, s *scope, args []expression, names []string, named []expression) ([]any, *Dict, error) {
	values, err := each(r, s, args)
	if err != nil {
		return nil, nil, err
	}
	more, err := each(r, s, named)
	if err != nil {
		return nil, nil, err
	}
	d := &Dict{}
	for i, name := range names {
		d.Set(name, more[i])
	}
	return values, d, nil
}

func (e filterExpr) value(r *renderer, s *scope) (any, error) {
	of, err := e.of.value(r, s)
	if err != nil {
		return nil, at(e.line, err)
	}
	args, named, err := given(r, s, e.args, e.names, e.named)
	if err != nil {
		return nil, at(e.line, err)
	}
	v, err := filters[e.name](r, of, arguments{args, named})
	if err != nil {
		err = fmt.Errorf("filter %s: %w", e.name, err)
	}
	return v, at(e.line, err)
}

func (e testExpr) value(r *renderer, s *scope) (any, error) {
	of, err := e.of.value(r, s)
	if err != nil {
		return nil, at(e.line, err)
	}
	args, err := each(r, s, e.args)
	if err != nil {
		return nil, at(e.line, err)
	}
	v, err := tests[e.name](of, args)
	return v, at(e.line, err)
}

func (e conditionExpr) value(r *renderer, s *scope) (any, error) {
	v, err := e.if_.value(r, s)
	switch {
	case err != nil:
		return nil, err
	case truth(v):
		return e.then.value(r, s)
	case e.otherwise == nil:
		return undefined{"the inline if-expression without else"}, nil
	}
	return e.otherwise.value(r, s)
}

func (e unaryExpr) value(r *renderer, s *scope) (any, error) {
	v, err := e.of.value(r, s)
	if err != nil {
		return nil, at(e.line, err)
	}
	if e.op == "not" {
		return !truth(v), nil
	}
	sign := 1
	if e.op == "-" {
		sign = -1
	}
	switch v := v.(type) {
	case int:
		return sign * v, nil
	case float64:
		return float64(sign) * v, nil
	}
	return nil, at(e.line, fmt.Errorf("%s has no sign", typeName(v)))
}

func (e binaryExpr) value(r *renderer, s *scope) (any, error) {
	left, err := e.left.value(r, s)
	if err != nil {
		return nil, at(e.line, err)
	}
	if e.op == "and" && !truth(left) || e.op == "or" && truth(left) {
		return left, nil
	}
	right, err := e.right.value(r, s)
	if err != nil || e.op == "and" || e.op == "or" {
		return right, at(e.line, err)
	}
	if err := r.step(); err != nil {
		return nil, err
	}
	v, err := operate(e.op, left, right)
	return v, at(e.line, err)
}

func operate(op string, a, b any) (any, error) {
	switch op {
	case "==":
		return equal(a, b), nil
	case "!=":
		return !equal(a, b), nil
	case "in":
		return contains(b, a)
	case "not in":
		v, err := contains(b, a)
		return !v, err
	case "<", "<=", ">", ">=":
		c, err := compare(a, b)
		return map[string]bool{"<": c < 0, "<=": c <= 0, ">": c > 0, ">=": c >= 0}[op], err
	case "~":
		return joined(text(a), text(b))
	}
	for _, v := range []any{a, b} {
		if u, is := v.(undefined); is {
			return nil, fmt.Errorf("%q is undefined", u.name)
		}
	}
	return arithmetic(op, a, b)
}

func joined(a, b string) (any, error) {
	if len(a)+len(b) > mostOutput {
		return nil, errOutput
	}
	return a + b, nil
}

// contains reports whether v is in a text, a list or a mapping's keys.
func contains(in, v any) (bool, error) {
	switch in := in.(type) {
	case string:
		s, ok := v.(string)
		if !ok {
			return false, fmt.Errorf("%s cannot be in a text", typeName(v))
		}
		return strings.Contains(in, s), nil
	case []any:
		return slices.ContainsFunc(in, func(o any) bool { return equal(o, v) }), nil
	case *Dict:
		_, ok := in.Get(v)
		return hashable(v) && ok, nil
	case undefined:
		return false, nil
	}
	return false, fmt.Errorf("nothing can be in %s", typeName(in))
}

func arithmetic(op string, a, b any) (any, error) {
	bad := fmt.Errorf("%s %s %s is not possible", typeName(a), op, typeName(b))
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok && op == "+" {
			return joined(x, y)
		}
		if n, ok := b.(int); ok && op == "*" {
			if n = max(n, 0); len(x)*n > mostOutput || n > mostOutput {
				return nil, errOutput
			}
			return strings.Repeat(x, n), nil
		}
		return nil, bad
	case []any:
		if y, ok := b.([]any); ok && op == "+" {
			if len(x)+len(y) > mostItems {
				return nil, errOutput
			}
			return slices.Concat(x, y), nil
		}
		return nil, bad
	}
	x, wholeX, ok := asNumber(a)
	y, wholeY, also := asNumber(b)
	if !ok || !also {
		return nil, bad
	}
	if (op == "/" || op == "//" || op == "%") && y == 0 {
		return nil, errors.New("division by zero")
	}
	var out float64
	switch op {
	case "+":
		out = x + y
	case "-":
		out = x - y
	case "*":
		out = x * y
	case "/":
		return x / y, nil
	case "//":
		out = math.Floor(x / y)
	case "%":
		out = x - y*math.Floor(x/y)
	case "**":
		out = math.Pow(x, y)
	default:
		return nil, bad
	}
	if wholeX && wholeY && (op != "**" || y >= 0) && math.Abs(out) < 1<<53 {
		return int(out), nil
	}
	return out, nil
}
