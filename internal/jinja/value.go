package jinja

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Dict is a mapping that keeps the order of its keys. The zero value is empty.
type Dict struct {
	keys   []any
	values map[any]any
}

// NewDict makes a mapping of keys and values in turn. The keys are texts.
func NewDict(pairs ...any) *Dict {
	d := &Dict{}
	for i := 0; i+1 < len(pairs); i += 2 {
		d.Set(pairs[i].(string), pairs[i+1])
	}
	return d
}

// Set sets a key's value. A new key is the last.
func (d *Dict) Set(key, value any) {
	if d.values == nil {
		d.values = map[any]any{}
	}
	if _, there := d.values[key]; !there {
		d.keys = append(d.keys, key)
	}
	d.values[key] = value
}

// Get returns a key's value.
func (d *Dict) Get(key any) (any, bool) {
	v, ok := d.values[key]
	return v, ok
}

// undefined is the value of a name that has none.
type undefined struct{ name string }

// namespace is an object whose attributes a template can set.
type namespace struct{ Dict }

// function is a value that can be called.
type function func(r *renderer, args []any, named *Dict) (any, error)

// From decodes JSON. Mappings keep the order of their keys.
func From(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := decode(d)
	if err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return v, nil
}

func decode(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
			return int(n), nil
		}
		return t.Float64()
	case json.Delim:
		if t == '[' {
			list := []any{}
			for d.More() {
				v, err := decode(d)
				if err != nil {
					return nil, err
				}
				list = append(list, v)
			}
			_, err := d.Token()
			return list, err
		}
		dict := &Dict{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decode(d)
			if err != nil {
				return nil, err
			}
			dict.Set(key, v)
		}
		_, err := d.Token()
		return dict, err
	}
	return t, nil
}

// Texts returns a value with change applied to every text in it, keys included.
func Texts(v any, change func(string) string) any {
	switch v := v.(type) {
	case string:
		return change(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = Texts(e, change)
		}
		return out
	case *Dict:
		out := &Dict{}
		for _, k := range v.keys {
			out.Set(Texts(k, change), Texts(v.values[k], change))
		}
		return out
	}
	return v
}

// truth is a value's truth in Python.
func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case *Dict:
		return len(v.keys) > 0
	}
	return true
}

// text writes a value as Python's str does.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	if _, ok := v.(undefined); ok {
		return ""
	}
	return represent(v)
}

// represent writes a value as Python's repr does.
func represent(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case int:
		return strconv.Itoa(v)
	case float64:
		return floatText(v)
	case string:
		return quote(v)
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = represent(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case *Dict:
		parts := make([]string, len(v.keys))
		for i, k := range v.keys {
			parts[i] = represent(k) + ": " + represent(v.values[k])
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case undefined:
		return "Undefined"
	}
	return fmt.Sprintf("<%s>", typeName(v))
}

// floatText writes a number as Python does.
func floatText(x float64) string {
	switch {
	case math.IsInf(x, 1):
		return "inf"
	case math.IsInf(x, -1):
		return "-inf"
	case math.IsNaN(x):
		return "nan"
	}
	if abs := math.Abs(x); x != 0 && (abs < 1e-4 || abs >= 1e16) {
		s := strconv.FormatFloat(x, 'e', -1, 64)
		return s
	}
	s := strconv.FormatFloat(x, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// quote writes a string as Python's repr does.
func quote(s string) string {
	mark := "'"
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		mark = `"`
	}
	var b strings.Builder
	b.WriteString(mark)
	for _, r := range s {
		switch {
		case string(r) == mark || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa1 || r == 0xad:
			fmt.Fprintf(&b, `\x%02x`, r)
		case !strconv.IsPrint(r) && r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		case !strconv.IsPrint(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + mark
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "None"
	case bool:
		return "a truth value"
	case int, float64:
		return "a number"
	case string:
		return "text"
	case []any:
		return "a list"
	case *Dict:
		return "a mapping"
	case undefined:
		return "undefined"
	case *namespace:
		return "a namespace"
	}
	return "a function"
}

// asNumber returns a number or truth value as a float.
func asNumber(v any) (x float64, whole bool, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true, true
		}
		return 0, true, true
	case int:
		return float64(v), true, true
	case float64:
		return v, false, true
	}
	return 0, false, false
}

// equal compares as Python's == does.
func equal(a, b any) bool {
	if x, _, ok := asNumber(a); ok {
		y, _, also := asNumber(b)
		return also && x == y
	}
	switch a := a.(type) {
	case undefined:
		_, ok := b.(undefined)
		return ok
	case []any:
		other, ok := b.([]any)
		return ok && slices.EqualFunc(a, other, equal)
	case *Dict:
		other, ok := b.(*Dict)
		if !ok || len(a.keys) != len(other.keys) {
			return false
		}
		for _, k := range a.keys {
			if v, there := other.Get(k); !there || !equal(a.values[k], v) {
				return false
			}
		}
		return true
	}
	if b == nil || a == nil || !reflect.TypeOf(a).Comparable() || !reflect.TypeOf(b).Comparable() {
		return a == nil && b == nil
	}
	return a == b
}

// compare orders numbers, texts and lists.
func compare(a, b any) (int, error) {
	if x, _, ok := asNumber(a); ok {
		if y, _, also := asNumber(b); also {
			switch {
			case x < y:
				return -1, nil
			case x > y:
				return 1, nil
			}
			return 0, nil
		}
	}
	if x, ok := a.(string); ok {
		if y, also := b.(string); also {
			return strings.Compare(x, y), nil
		}
	}
	if x, ok := a.([]any); ok {
		if y, also := b.([]any); also {
			for i := range min(len(x), len(y)) {
				if equal(x[i], y[i]) {
					continue
				}
				return compare(x[i], y[i])
			}
			return len(x) - len(y), nil
		}
	}
	return 0, fmt.Errorf("%s and %s have no order", typeName(a), typeName(b))
}

// elements returns what a loop over a value goes through.
func elements(v any) ([]any, error) {
	switch v := v.(type) {
	case []any:
		return v, nil
	case *Dict:
		return v.keys, nil
	case string:
		var out []any
		for _, r := range v {
			out = append(out, string(r))
		}
		return out, nil
	case undefined:
		return nil, nil
	}
	return nil, fmt.Errorf("%s cannot be looped over", typeName(v))
}
