package jinja

import (
	"math"
	"math/big"
	"slices"
	"strings"
)

func (e literal) value(*renderer, *scope) any { return e.is }

func (e nameExpr) value(r *renderer, s *scope) any {
	if v, ok := s.find(e.name); ok {
		return v
	}
	if e.name == "strftime_now" && r.now.IsZero() {
		return undefined(e)
	}
	if f, ok := globals[e.name]; ok {
		return f
	}
	return undefined(e)
}

// each evaluates expressions.
func each(r *renderer, s *scope, all []expression) []any {
	out := make([]any, 0, len(all))
	for _, e := range all {
		v := r.value(e, s)
		if _, several := e.(spreadExpr); several {
			out = append(out, v.([]any)...)
			continue
		}
		out = append(out, v)
	}
	r.visit(len(out))
	return out
}

func (e spreadExpr) value(r *renderer, s *scope) any { return r.elements(r.value(e.of, s)) }

func (e listExpr) value(r *renderer, s *scope) any { return each(r, s, e.of) }

func (e dictExpr) value(r *renderer, s *scope) any {
	keys, values := each(r, s, e.keys), each(r, s, e.values)
	d := &Dict{}
	for i, k := range keys {
		d.Set(r.key(k), values[i])
	}
	return d
}

// key is a value that can be a key.
func (r *renderer) key(v any) any {
	if !hashable(v) {
		panic(r.failure("%s cannot be a key", typeName(v)))
	}
	return v
}

// hashable reports whether a value can be a key.
func hashable(v any) bool {
	switch v.(type) {
	case nil, bool, int, float64, large, string:
		return true
	}
	return false
}

func (e attribute) value(r *renderer, s *scope) any {
	r.line = e.line
	return r.get(r.value(e.of, s), e.name)
}

// get returns an attribute: a method, or a key's value.
func (r *renderer) get(of any, name string) any {
	switch of := of.(type) {
	case undefined:
		panic(r.undefined(of))
	case loop:
		return of.get(name)
	case *namespace:
		if v, ok := of.Get(name); ok {
			return v
		}
	case *Dict:
		if m, ok := dictMethods[name]; ok {
			return bound(m, of)
		}
		if v, ok := of.Get(name); ok {
			return v
		}
	case string:
		if m, ok := textMethods[name]; ok {
			return bound(m, of)
		}
	case []any:
		if m, ok := listMethods[name]; ok {
			return bound(m, of)
		}
	}
	return undefined{name}
}

func (e indexExpr) value(r *renderer, s *scope) any {
	r.line = e.line
	of, with := r.value(e.of, s), r.value(e.with, s)
	if b, ok := with.(bool); ok {
		with = map[bool]int{true: 1}[b]
	}
	i, number := with.(int)
	switch of := of.(type) {
	case undefined:
		panic(r.undefined(of))
	case *Dict:
		if v, ok := of.Get(with); ok {
			return v
		}
	case string:
		if number {
			if c, ok := indexed(r.runes(of), i); ok {
				return string(c)
			}
		}
	case []any:
		if v, ok := indexed(of, i); ok && number {
			return v
		}
	}
	if name, ok := with.(string); ok {
		return r.get(of, name)
	}
	return undefined{r.text(with)}
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

func (e sliceExpr) value(r *renderer, s *scope) any {
	r.line = e.line
	of := r.value(e.of, s)
	var bounds [3]*int
	for i, part := range []expression{e.from, e.to, e.step} {
		if part == nil {
			continue
		}
		v := r.value(part, s)
		if n, ok := v.(int); ok {
			bounds[i] = &n
		} else if v != nil {
			panic(r.failure("a slice has %s for a bound", typeName(v)))
		}
	}
	if bounds[2] != nil && *bounds[2] == 0 {
		panic(r.failure("a slice has the step 0"))
	}
	switch of := of.(type) {
	case *generator:
		panic(r.failure("a generator has no slices"))
	case undefined:
		panic(r.undefined(of))
	case string:
		return string(sliced(r.runes(of), bounds[0], bounds[1], bounds[2]))
	}
	items := r.elements(of)
	r.visit(len(items))
	return sliced(items, bounds[0], bounds[1], bounds[2])
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

func (e callExpr) value(r *renderer, s *scope) any {
	r.line = e.line
	of := r.value(e.of, s)
	f, ok := of.(function)
	if u, is := of.(undefined); is {
		panic(r.undefined(u))
	}
	if !ok {
		panic(r.failure("%s cannot be called", typeName(of)))
	}
	args, named := e.given.values(r, s)
	return f(r, args, named)
}

// values evaluates arguments.
func (g given) values(r *renderer, s *scope) ([]any, *Dict) {
	values, more := each(r, s, g.args), each(r, s, g.named)
	d := &Dict{}
	for i, name := range g.names {
		if name != "" {
			d.Set(name, more[i])
			continue
		}
		mapping, ok := more[i].(*Dict)
		if !ok {
			panic(r.failure("named arguments are %s and no mapping", typeName(more[i])))
		}
		d.Add(mapping)
	}
	return values, d
}

func (e filterExpr) value(r *renderer, s *scope) any {
	r.line = e.line
	of := r.value(e.of, s)
	args, named := e.given.values(r, s)
	f, known := filters[e.name]
	if !known {
		panic(r.failure("the filter %q is not supported", e.name))
	}
	r.filter = e.name
	v := f(r, of, arguments{args, named})
	r.filter = ""
	return v
}

func (e testExpr) value(r *renderer, s *scope) any {
	r.line = e.line
	of, args := r.value(e.of, s), each(r, s, e.args)
	test, known := tests[e.name]
	if !known {
		panic(r.failure("the test %q is not supported", e.name))
	}
	return test(r, of, args)
}

func (e conditionExpr) value(r *renderer, s *scope) any {
	switch {
	case truth(r.value(e.if_, s)):
		return r.marked(e.then, s)
	case e.otherwise == nil:
		return undefined{"the inline if-expression without else"}
	}
	return r.marked(e.otherwise, s)
}

func (e unaryExpr) value(r *renderer, s *scope) any {
	r.line = e.line
	v := r.value(e.of, s)
	if e.op == "not" {
		return !truth(v)
	}
	sign := 1
	if e.op == "-" {
		sign = -1
	}
	switch v := v.(type) {
	case int:
		return r.whole("*", sign, v)
	case float64:
		return float64(sign) * v
	}
	panic(r.failure("%s has no sign", typeName(v)))
}

func (e binaryExpr) value(r *renderer, s *scope) any {
	r.line = e.line
	left := r.marked(e.left, s)
	if e.op == "+" {
		right := r.marked(e.right, s)
		if joined, ok := r.joinMarked(left, right); ok {
			return joined
		}
		return r.operate(e.op, unmarked(left), unmarked(right))
	}
	left = unmarked(left)
	if e.op == "and" && !truth(left) || e.op == "or" && truth(left) {
		return left
	}
	right := r.value(e.right, s)
	if e.op == "and" || e.op == "or" {
		return right
	}
	return r.operate(e.op, left, right)
}

func (r *renderer) operate(op string, a, b any) any {
	switch op {
	case "==":
		return r.equal(a, b)
	case "!=":
		return !r.equal(a, b)
	case "in":
		return r.contains(b, a)
	case "not in":
		return !r.contains(b, a)
	case "<":
		return r.compare(a, b) < 0
	case "<=":
		return r.compare(a, b) <= 0
	case ">":
		return r.compare(a, b) > 0
	case ">=":
		return r.compare(a, b) >= 0
	case "~":
		return r.joined(r.text(a), r.text(b))
	}
	for _, v := range []any{a, b} {
		if u, is := v.(undefined); is {
			panic(r.undefined(u))
		}
	}
	return r.arithmetic(op, a, b)
}

func (r *renderer) joined(a, b string) string {
	r.spend(len(a)+len(b), 1)
	return a + b
}

// contains reports whether v is in a text, a list or a mapping's keys.
func (r *renderer) contains(in, v any) bool {
	switch in := in.(type) {
	case string:
		s, ok := v.(string)
		if !ok {
			panic(r.failure("%s cannot be in a text", typeName(v)))
		}
		r.spend(len(in), 1)
		return strings.Contains(in, s)
	case []any, *generator:
		return slices.ContainsFunc(r.elements(in), func(o any) bool { return r.equal(o, v) })
	case *Dict:
		_, ok := in.Get(r.key(v))
		return ok
	case undefined:
		return false
	}
	panic(r.failure("nothing can be in %s", typeName(in)))
}

func (r *renderer) arithmetic(op string, a, b any) any {
	bad := func() failure { return r.failure("%s %s %s is not possible", typeName(a), op, typeName(b)) }
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok && op == "+" {
			return r.joined(x, y)
		}
		if n, ok := b.(int); ok && op == "*" {
			return r.repeat(x, n)
		}
		panic(bad())
	case []any:
		if y, ok := b.([]any); ok && op == "+" {
			r.visit(len(x) + len(y))
			return slices.Concat(x, y)
		}
		panic(bad())
	}
	x, wholeX, ok := asNumber(a)
	y, wholeY, also := asNumber(b)
	if !ok || !also {
		panic(bad())
	}
	_, largeX := a.(large)
	if _, largeY := b.(large); largeX || largeY {
		panic(r.failure(tooLarge))
	}
	if (op == "/" || op == "//" || op == "%") && y == 0 {
		panic(r.failure("division by zero"))
	}
	if wholeX && wholeY && op != "/" && (op != "**" || y >= 0) {
		return r.whole(op, integer(a), integer(b))
	}
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/":
		return x / y
	case "//":
		return math.Floor(x / y)
	case "%":
		return x - y*math.Floor(x/y)
	}
	return math.Pow(x, y)
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
func (r *renderer) whole(op string, x, y int) int {
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
			panic(r.failure(tooLarge))
		}
		out.Exp(a, b, nil)
	}
	if !out.IsInt64() {
		panic(r.failure(tooLarge))
	}
	return int(out.Int64())
}

const tooLarge = "the result is too large for a whole number"
