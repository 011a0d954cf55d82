package jinja

import (
	"errors"
	"fmt"
	"math"
	"math/big"
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
	out := make([]any, 0, len(all))
	for _, e := range all {
		v, err := r.value(e, s)
		if err != nil {
			return nil, err
		}
		if _, several := e.(spreadExpr); several {
			out = append(out, v.([]any)...)
			continue
		}
		out = append(out, v)
	}
	r.visit(len(out))
	return out, nil
}

func (e spreadExpr) value(r *renderer, s *scope) (any, error) {
	of, err := r.value(e.of, s)
	if err != nil {
		return nil, err
	}
	all, err := r.elements(of)
	return all, err
}

func (e *bodyExpr) value(r *renderer, s *scope) (any, error) { return r.capture(e.body, s.inner()) }

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
	case nil, bool, int, float64, large, string:
		return true
	}
	return false
}

func (e attribute) value(r *renderer, s *scope) (any, error) {
	of, err := r.value(e.of, s)
	if err == nil {
		of, err = r.get(of, e.name)
	}
	return of, at(e.line, err)
}

// get returns an attribute: a method, or a key's value.
func (r *renderer) get(of any, name string) (any, error) {
	switch of := of.(type) {
	case undefined:
		return nil, fmt.Errorf("%q is undefined", of.name)
	case loop:
		return of.get(name), nil
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
	of, err := r.value(e.of, s)
	if err != nil {
		return nil, at(e.line, err)
	}
	with, err := r.value(e.with, s)
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
		if v, ok := of.Get(with); ok {
			return v, nil
		}
	case string:
		if i, ok := with.(int); ok {
			if c, ok := indexed(r.runes(of), i); ok {
				return string(c), nil
			}
		}
	case []any:
		if i, ok := with.(int); ok {
			if v, ok := indexed(of, i); ok {
				return v, nil
			}
		}
	}
	if name, ok := with.(string); ok {
		v, err := r.get(of, name)
		return v, at(e.line, err)
	}
	return undefined{r.text(with)}, nil
}

// indexed returns an item by Python's index: a negative one counts from the end.
func indexed[T any](items []T, i int) (item T, ok bool) {
	if i < 0 {
		i += len(items)
	}
	if i < 0 || i >= len(items) {
		return item, false
	}
	return items[i], true
}

func (e sliceExpr) value(r *renderer, s *scope) (any, error) {
	of, err := r.value(e.of, s)
	if err != nil {
		return nil, at(e.line, err)
	}
	var bounds [3]*int
	for i, part := range []expression{e.from, e.to, e.step} {
		if part == nil {
			continue
		}
		v, err := r.value(part, s)
		if err != nil {
			return nil, at(e.line, err)
		}
		if n, ok := v.(int); ok {
			bounds[i] = &n
		} else if v != nil {
			return nil, at(e.line, fmt.Errorf("a slice has %s for a bound", typeName(v)))
		}
	}
	if bounds[2] != nil && *bounds[2] == 0 {
		return nil, at(e.line, errors.New("a slice has the step 0"))
	}
	switch of := of.(type) {
	case *generator:
		return nil, at(e.line, errors.New("a generator has no slices"))
	case undefined:
		return nil, at(e.line, fmt.Errorf("%q is undefined", of.name))
	case string:
		return string(sliced(r.runes(of), bounds[0], bounds[1], bounds[2])), nil
	}
	items, err := r.elements(of)
	if err != nil {
		return nil, at(e.line, err)
	}
	r.visit(len(items))
	return sliced(items, bounds[0], bounds[1], bounds[2]), nil
}

// sliced is Python's items[from:to:step] for a step that is not 0.
func sliced[T any](items []T, from, to, step *int) []T {
	by, n := 1, len(items)
	if step != nil {
		by = min(max(*step, -n-1), n+1) // a larger step leaves the items as well
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
	out := []T{}
	last := bound(to, end)
	for i := bound(from, first); by > 0 && i < last || by < 0 && i > last; i += by {
		out = append(out, items[i])
	}
	return out
}

func (e callExpr) value(r *renderer, s *scope) (any, error) {
	of, err := r.value(e.of, s)
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
		if name != "" {
			d.Set(name, more[i])
			continue
		}
		mapping, ok := more[i].(*Dict)
		if !ok {
			return nil, nil, fmt.Errorf("named arguments are %s and no mapping", typeName(more[i]))
		}
		for _, k := range mapping.keys {
			d.Set(k, mapping.values[k])
		}
	}
	return values, d, nil
}

func (e filterExpr) value(r *renderer, s *scope) (any, error) {
	of, err := r.value(e.of, s)
	if err != nil {
		return nil, at(e.line, err)
	}
	args, named, err := given(r, s, e.args, e.names, e.named)
	if err != nil {
		return nil, at(e.line, err)
	}
	f, known := filters[e.name]
	if !known {
		return nil, at(e.line, fmt.Errorf("the filter %q is not supported", e.name))
	}
	v, err := f(r, of, arguments{args, named})
	if err != nil {
		err = fmt.Errorf("filter %s: %w", e.name, err)
	}
	return v, at(e.line, err)
}

func (e testExpr) value(r *renderer, s *scope) (any, error) {
	of, err := r.value(e.of, s)
	if err != nil {
		return nil, at(e.line, err)
	}
	args, err := each(r, s, e.args)
	if err != nil {
		return nil, at(e.line, err)
	}
	test, known := tests[e.name]
	if !known {
		return nil, at(e.line, fmt.Errorf("the test %q is not supported", e.name))
	}
	v, err := test(r, of, args)
	return v, at(e.line, err)
}

func (e conditionExpr) value(r *renderer, s *scope) (any, error) {
	v, err := r.value(e.if_, s)
	switch {
	case err != nil:
		return nil, err
	case truth(v):
		return r.marked(e.then, s)
	case e.otherwise == nil:
		return undefined{"the inline if-expression without else"}, nil
	}
	return r.marked(e.otherwise, s)
}

func (e unaryExpr) value(r *renderer, s *scope) (any, error) {
	v, err := r.value(e.of, s)
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
		n, err := whole("*", sign, v)
		return n, at(e.line, err)
	case float64:
		return float64(sign) * v, nil
	}
	return nil, at(e.line, fmt.Errorf("%s has no sign", typeName(v)))
}

func (e binaryExpr) value(r *renderer, s *scope) (any, error) {
	left, err := r.marked(e.left, s)
	if err != nil {
		return nil, at(e.line, err)
	}
	if e.op == "+" {
		right, err := r.marked(e.right, s)
		if err != nil {
			return nil, at(e.line, err)
		}
		if joined, ok := r.joinMarked(left, right); ok {
			return joined, nil
		}
		v, err := r.operate(e.op, unmarked(left), unmarked(right))
		return v, at(e.line, err)
	}
	left = unmarked(left)
	if e.op == "and" && !truth(left) || e.op == "or" && truth(left) {
		return left, nil
	}
	right, err := r.value(e.right, s)
	if err != nil || e.op == "and" || e.op == "or" {
		return right, at(e.line, err)
	}
	v, err := r.operate(e.op, left, right)
	return v, at(e.line, err)
}

func (r *renderer) operate(op string, a, b any) (any, error) {
	switch op {
	case "==":
		return r.equal(a, b), nil
	case "!=":
		return !r.equal(a, b), nil
	case "in":
		return r.contains(b, a)
	case "not in":
		v, err := r.contains(b, a)
		return !v, err
	case "<", "<=", ">", ">=":
		c, err := r.compare(a, b)
		return map[string]bool{"<": c < 0, "<=": c <= 0, ">": c > 0, ">=": c >= 0}[op], err
	case "~":
		return r.joined(r.text(a), r.text(b)), nil
	}
	for _, v := range []any{a, b} {
		if u, is := v.(undefined); is {
			return nil, fmt.Errorf("%q is undefined", u.name)
		}
	}
	return r.arithmetic(op, a, b)
}

func (r *renderer) joined(a, b string) string {
	r.spend(len(a)+len(b), 1)
	return a + b
}

// contains reports whether v is in a text, a list or a mapping's keys.
func (r *renderer) contains(in, v any) (bool, error) {
	switch in := in.(type) {
	case string:
		s, ok := v.(string)
		if !ok {
			return false, fmt.Errorf("%s cannot be in a text", typeName(v))
		}
		r.spend(len(in), 1)
		return strings.Contains(in, s), nil
	case []any:
		return slices.ContainsFunc(in, func(o any) bool { return r.equal(o, v) }), nil
	case *Dict:
		if !hashable(v) {
			return false, fmt.Errorf("%s cannot be a key", typeName(v))
		}
		_, ok := in.Get(v)
		return ok, nil
	case *generator:
		all, err := r.elements(in)
		return slices.ContainsFunc(all, func(o any) bool { return r.equal(o, v) }), err
	case undefined:
		return false, nil
	}
	return false, fmt.Errorf("nothing can be in %s", typeName(in))
}

func (r *renderer) arithmetic(op string, a, b any) (any, error) {
	bad := fmt.Errorf("%s %s %s is not possible", typeName(a), op, typeName(b))
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok && op == "+" {
			return r.joined(x, y), nil
		}
		if n, ok := b.(int); ok && op == "*" {
			return r.repeat(x, n), nil
		}
		return nil, bad
	case []any:
		if y, ok := b.([]any); ok && op == "+" {
			r.visit(len(x) + len(y))
			return slices.Concat(x, y), nil
		}
		return nil, bad
	}
	x, wholeX, ok := asNumber(a)
	y, wholeY, also := asNumber(b)
	if !ok || !also {
		return nil, bad
	}
	_, largeX := a.(large)
	if _, largeY := b.(large); largeX || largeY {
		return nil, errLarge
	}
	if (op == "/" || op == "//" || op == "%") && y == 0 {
		return nil, errors.New("division by zero")
	}
	if wholeX && wholeY && op != "/" && (op != "**" || y >= 0) {
		return whole(op, integer(a), integer(b))
	}
	switch op {
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "*":
		return x * y, nil
	case "/":
		return x / y, nil
	case "//":
		return math.Floor(x / y), nil
	case "%":
		return x - y*math.Floor(x/y), nil
	case "**":
		return math.Pow(x, y), nil
	}
	return nil, bad
}

// integer returns a whole number or truth value as a number.
func integer(v any) int {
	if n, ok := v.(int); ok {
		return n
	}
	if v == true {
		return 1
	}
	return 0
}

// whole is an operation of whole numbers. A result that has no place in an int is an error; Python's have no bound.
func whole(op string, x, y int) (any, error) {
	a, b, out := big.NewInt(int64(x)), big.NewInt(int64(y)), new(big.Int)
	switch op {
	case "+":
		out.Add(a, b)
	case "-":
		out.Sub(a, b)
	case "*":
		out.Mul(a, b)
	case "//", "%": // the rest of DivMod is never negative, Python's has the sign of y
		quotient, rest := new(big.Int).DivMod(a, b, new(big.Int))
		if rest.Sign() != 0 && y < 0 {
			quotient.Sub(quotient, big.NewInt(1))
			rest.Add(rest, b)
		}
		if out = quotient; op == "%" {
			out = rest
		}
	case "**":
		if math.Abs(math.Pow(float64(x), float64(y))) > math.MaxInt64 {
			return nil, errLarge
		}
		out.Exp(a, b, nil)
	}
	if !out.IsInt64() {
		return nil, errLarge
	}
	return int(out.Int64()), nil
}

var errLarge = errors.New("the result is too large for a whole number")
