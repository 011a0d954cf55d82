package choice

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Check reports the first field of a struct of settings that is outside of the limits in its tags: min and max, which
// are inclusive, above and below, which are not, and the names of enum. A number without limits must be finite; a text
// may be empty, which means its default. of begins the error, and says whose field it is.
func Check(of string, settings any) error {
	v := reflect.ValueOf(settings)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if fault := limitsOf(f.Tag).fault(reflect.Indirect(v.Field(i))); fault != "" && f.IsExported() {
			return fmt.Errorf("%s%s must be %s", of, fieldName(f), fault)
		}
	}
	return nil
}

// limits are those of a field; a limit that it does not have is "".
type limits struct {
	names                  []string
	min, max, above, below string
}

func limitsOf(tag reflect.StructTag) limits {
	l := limits{min: tag.Get("min"), max: tag.Get("max"), above: tag.Get("above"), below: tag.Get("below")}
	if enum := tag.Get("enum"); enum != "" {
		l.names = strings.Split(enum, "|")
	}
	return l
}

// fault says what a value must be, and what it is; "" = it is within the limits, or of a kind that has none.
func (l limits) fault(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); s != "" && l.names != nil && !slices.Contains(l.names, s) {
			return fmt.Sprintf("%s, got %q", either(l.names), s)
		}
	case reflect.Int:
		if !l.hold(float64(v.Int())) {
			return fmt.Sprintf("%s, got %d", l.inWords(), v.Int())
		}
	case reflect.Float64:
		if x := v.Float(); !l.hold(x) || math.IsInf(x, 0) {
			words := l.inWords()
			if words == "" {
				words = "finite"
			} else if !strings.HasPrefix(words, "in ") {
				words = "finite and " + words
			}
			return fmt.Sprintf("%s, got %g", words, x)
		}
	}
	return ""
}

// hold reports whether a number is within the limits.
func (l limits) hold(x float64) bool {
	to := func(limit string, otherwise float64) float64 {
		if n, err := strconv.ParseFloat(limit, 64); err == nil {
			return n
		}
		return otherwise
	}
	low, high := math.Inf(-1), math.Inf(1)
	return x >= to(l.min, low) && x <= to(l.max, high) && (l.above == "" || x > to(l.above, low)) &&
		(l.below == "" || x < to(l.below, high))
}

// inWords is an interval, or the only limit.
func (l limits) inWords() string {
	low, open := l.min, "["
	if l.above != "" {
		low, open = l.above, "("
	}
	high, end := l.max, "]"
	if l.below != "" {
		high, end = l.below, ")"
	}
	switch {
	case low != "" && high != "":
		return "in " + open + low + ", " + high + end
	case l.above != "":
		return "> " + low
	case low != "":
		return "≥ " + low
	case high != "":
		return "≤ " + high
	}
	return ""
}

// either lists names: a, b or c.
func either(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// fieldName is the name of a parameter, or of a field that is none in the same form: min_variance.
func fieldName(f reflect.StructField) string {
	if name := parameter(f); name != "" {
		return name
	}
	var out strings.Builder
	for i, r := range f.Name {
		if unicode.IsUpper(r) && i > 0 {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}
