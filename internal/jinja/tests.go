package jinja

import "strings"

// test is a test of a value.
type test func(r *renderer, of any, args []any) bool

// tests are the tests that templates may use.
var tests = map[string]test{
	"defined":   plainTest(func(v any) bool { _, u := v.(undefined); return !u }),
	"undefined": plainTest(func(v any) bool { _, u := v.(undefined); return u }),
	"none":      plainTest(func(v any) bool { return v == nil }),
	"string":    plainTest(func(v any) bool { _, ok := v.(string); return ok }),
	"boolean":   plainTest(func(v any) bool { _, ok := v.(bool); return ok }),
	"integer":   plainTest(isInteger),
	"float":     plainTest(func(v any) bool { _, ok := v.(float64); return ok }),
	"number":    plainTest(func(v any) bool { _, _, ok := asNumber(v); return ok }),
	"mapping":   plainTest(func(v any) bool { _, ok := v.(*Dict); return ok }),
	"callable":  plainTest(func(v any) bool { _, ok := v.(function); return ok }),
	"true":      plainTest(func(v any) bool { return v == true }),
	"false":     plainTest(func(v any) bool { return v == false }),
	"lower":     cased(strings.ToLower, strings.ToUpper),
	"upper":     cased(strings.ToUpper, strings.ToLower),
	"iterable":  plainTest(iterable),
	"sequence":  plainTest(iterable),
	"odd":       parity(1), "even": parity(0),
	"divisibleby": func(r *renderer, v any, args []any) bool {
		n, ok := v.(int)
		by, also := argument(args, 0).(int)
		if len(args) != 1 || !ok || !also || by == 0 {
			panic(r.failure("divisibleby wants whole numbers"))
		}
		return n%by == 0
	},
	"in": func(r *renderer, of any, args []any) bool {
		if len(args) != 1 {
			panic(r.failure("the test in wants one argument"))
		}
		return r.contains(args[0], of)
	},
	"eq": operator("=="), "equalto": operator("=="), "==": operator("=="), "sameas": operator("=="),
	"ne": operator("!="), "!=": operator("!="),
	"lt": operator("<"), "lessthan": operator("<"), "<": operator("<"), "le": operator("<="), "<=": operator("<="),
	"gt": operator(">"), "greaterthan": operator(">"), ">": operator(">"), "ge": operator(">="), ">=": operator(">="),
}

func isInteger(v any) bool {
	switch v.(type) {
	case int, large:
		return true
	}
	return false
}

// cased is the test of a text that one change leaves as it is and the other does not.
func cased(stays, changes func(string) string) test {
	return func(r *renderer, v any, _ []any) bool {
		s := r.text(v)
		return s == r.changed(stays, s) && s != r.changed(changes, s)
	}
}

func plainTest(f func(any) bool) test {
	return func(_ *renderer, v any, _ []any) bool { return f(v) }
}

// operator is the test that an operator of comparison is.
func operator(op string) test {
	return func(r *renderer, v any, args []any) bool {
		if len(args) != 1 {
			panic(r.failure("the test wants one argument"))
		}
		return r.operate(op, v, args[0]).(bool)
	}
}

func parity(rest int) test {
	return func(r *renderer, v any, _ []any) bool {
		n, ok := v.(int)
		if !ok {
			panic(r.failure("want a whole number"))
		}
		return (n%2+2)%2 == rest
	}
}
