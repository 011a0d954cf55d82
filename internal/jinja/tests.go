package jinja

import (
	"errors"
	"strings"
)

// tests are the tests that templates may use.
var tests = map[string]func(of any, args []any) (bool, error){
	"defined":   plainTest(func(v any) bool { _, u := v.(undefined); return !u }),
	"undefined": plainTest(func(v any) bool { _, u := v.(undefined); return u }),
	"none":      plainTest(func(v any) bool { return v == nil }),
	"string":    plainTest(func(v any) bool { _, ok := v.(string); return ok }),
	"boolean":   plainTest(func(v any) bool { _, ok := v.(bool); return ok }),
	"integer":   plainTest(func(v any) bool { _, ok := v.(int); return ok }),
	"float":     plainTest(func(v any) bool { _, ok := v.(float64); return ok }),
	"number":    plainTest(func(v any) bool { _, _, ok := asNumber(v); return ok }),
	"mapping":   plainTest(func(v any) bool { _, ok := v.(*Dict); return ok }),
	"callable":  plainTest(func(v any) bool { _, ok := v.(function); return ok }),
	"true":      plainTest(func(v any) bool { return v == true }),
	"false":     plainTest(func(v any) bool { return v == false }),
	"lower":     cased(strings.ToLower, strings.ToUpper),
	"upper":     cased(strings.ToUpper, strings.ToLower),
	"iterable":  plainTest(func(v any) bool { _, err := elements(v); return err == nil }),
	"sequence": plainTest(func(v any) bool {
		_, err := elements(v)
		return err == nil
	}),
	"odd":         parity(1),
	"even":        parity(0),
	"divisibleby": divisible,
	"in": func(of any, args []any) (bool, error) {
		if len(args) != 1 {
			return false, errors.New("the test in wants one argument")
		}
		return contains(args[0], of)
	},
	"eq": comparing(func(a, b any) (bool, error) { return equal(a, b), nil }), "equalto": comparing(same),
	"==": comparing(same), "sameas": comparing(same),
	"ne": comparing(differs), "!=": comparing(differs),
	"lt": ordered(func(c int) bool { return c < 0 }), "lessthan": ordered(func(c int) bool { return c < 0 }),
	"<": ordered(func(c int) bool { return c < 0 }), "le": ordered(func(c int) bool { return c <= 0 }),
	"<=": ordered(func(c int) bool { return c <= 0 }), "gt": ordered(func(c int) bool { return c > 0 }),
	"greaterthan": ordered(func(c int) bool { return c > 0 }), ">": ordered(func(c int) bool { return c > 0 }),
	"ge": ordered(func(c int) bool { return c >= 0 }), ">=": ordered(func(c int) bool { return c >= 0 }),
}

// cased is the test of a text that one change leaves as it is and the other does not.
func cased(stays, changes func(string) string) func(any, []any) (bool, error) {
	return plainTest(func(v any) bool { s := text(v); return s == stays(s) && s != changes(s) })
}

func same(a, b any) (bool, error)    { return equal(a, b), nil }
func differs(a, b any) (bool, error) { return !equal(a, b), nil }

func plainTest(f func(any) bool) func(any, []any) (bool, error) {
	return func(v any, _ []any) (bool, error) { return f(v), nil }
}

func comparing(f func(a, b any) (bool, error)) func(any, []any) (bool, error) {
	return func(v any, args []any) (bool, error) {
		if len(args) != 1 {
			return false, errors.New("the test wants one argument")
		}
		return f(v, args[0])
	}
}

func ordered(f func(c int) bool) func(any, []any) (bool, error) {
	return comparing(func(a, b any) (bool, error) {
		c, err := compare(a, b)
		return err == nil && f(c), err
	})
}

func parity(rest int) func(any, []any) (bool, error) {
	return func(v any, _ []any) (bool, error) {
		n, ok := v.(int)
		if !ok {
			return false, errors.New("want a whole number")
		}
		return (n%2+2)%2 == rest, nil
	}
}

func divisible(v any, args []any) (bool, error) {
	n, ok := v.(int)
	if len(args) != 1 || !ok {
		return false, errors.New("divisibleby wants whole numbers")
	}
	by, ok := args[0].(int)
	if !ok || by == 0 {
		return false, errors.New("divisibleby wants whole numbers")
	}
	return n%by == 0, nil
}
