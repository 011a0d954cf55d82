package words

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Calls compares calls of functions. The answer is a JSON list of {"name": …, "arguments": {…}}. golds is a JSON list
// of {NAME: {ARGUMENT: [values that are right]}}; the value "" says that the argument may be absent. valid is false if
// the answer is no such list. It is right if its calls are the golds, each once, in any order.
//
// Numbers are compared by value, and texts without case, spaces and the marks ,./-_*^, with either quote. An object's
// fields are arguments too, with their own values. Source: the abstract syntax tree of the Berkeley Function-Calling
// Leaderboard (Patil et al. 2025). Departures: 5.0 is the whole number 5, and what the function's schema requires may
// be absent where the gold says so.
func Calls(answer, golds string) (valid, right bool) {
	var calls []struct {
		Name      string
		Arguments any
	}
	var left []map[string]any
	if decode(answer, &calls) != nil || calls == nil {
		return false, false
	}
	if decode(golds, &left) != nil || len(left) != len(calls) {
		return true, false
	}
	for _, c := range calls {
		i := slices.IndexFunc(left, func(gold map[string]any) bool {
			want, there := gold[c.Name]
			return there && same(c.Arguments, want)
		})
		if i < 0 {
			return true, false
		}
		left = slices.Delete(left, i, i+1)
	}
	return true, true
}

// decode keeps numbers as they are written.
func decode(text string, to any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d.Decode(to)
}

// same reports whether a value is one that is right.
func same(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		fields, is := got.(map[string]any)
		for name := range fields {
			is = is && want[name] != nil
		}
		for name := range maps.Keys(want) {
			values, _ := want[name].([]any)
			value, there := fields[name]
			is = is && slices.ContainsFunc(values, func(v any) bool {
				return there && same(value, v) || !there && v == ""
			})
		}
		return is
	case []any:
		items, is := got.([]any)
		return is && slices.EqualFunc(items, want, same)
	case string:
		text, is := got.(string)
		return is && plain(text) == plain(want)
	case json.Number:
		n, is := got.(json.Number)
		return is && sameNumber(n.String(), want.String())
	}
	return got == want
}

// sameNumber compares whole numbers digit by digit, because they may be too long for a float.
func sameNumber(a, b string) bool {
	if !strings.ContainsAny(a+b, ".eE") {
		return a == b
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y
}

var plainly = strings.NewReplacer(" ", "", ",", "", ".", "", "/", "", "-", "", "_", "", "*", "", "^", "", "'", `"`)

func plain(text string) string { return strings.ToLower(plainly.Replace(text)) }
