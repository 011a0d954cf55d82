package compare

import (
	"fmt"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/schema"
)

// valueShown bounds the text of a value.
const valueShown = 40

// columns returns the columns in which two rows of one table differ. A row of another version of the program may lack
// columns; those are null.
func columns(a, b []schema.Field) []Column {
	out := []Column{}
	for _, f := range a {
		other, _ := value(b, f.Name)
		if !reflect.DeepEqual(f.Value, other) {
			out = append(out, column(f.Name, f.Value, other))
		}
	}
	for _, f := range b {
		if _, there := value(a, f.Name); !there && f.Value != nil {
			out = append(out, column(f.Name, nil, f.Value))
		}
	}
	return out
}

func value(row []schema.Field, name string) (any, bool) {
	for _, f := range row {
		if f.Name == name {
			return f.Value, true
		}
	}
	return nil, false
}

// column describes two different values; of lists it shows the first elements that differ.
func column(name string, a, b any) Column {
	left, right := reflect.ValueOf(a), reflect.ValueOf(b)
	if a == nil || b == nil || left.Kind() != reflect.Slice || right.Kind() != reflect.Slice {
		return Column{Name: name, Values: [2]string{text(a), text(b)}}
	}
	at := 0
	for at < min(left.Len(), right.Len()) &&
		reflect.DeepEqual(left.Index(at).Interface(), right.Index(at).Interface()) {
		at++
	}
	element := func(list reflect.Value) string {
		if at >= list.Len() {
			return fmt.Sprintf("(ends after %d)", list.Len())
		}
		return text(list.Index(at).Interface())
	}
	return Column{Name: name, At: &at, Values: [2]string{element(left), element(right)}}
}

// text writes a value in one short line.
func text(v any) string {
	var out string
	switch x := v.(type) {
	case nil:
		return "null"
	case string:
		out = strconv.Quote(x)
	case float32:
		out = strconv.FormatFloat(float64(x), 'g', -1, 32)
	default:
		out = fmt.Sprint(x)
	}
	if utf8.RuneCountInString(out) > valueShown {
		out = string([]rune(out)[:valueShown-1]) + "…"
	}
	return out
}
