package tool

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
)

// The arguments of a tool are the fields of a struct. The tag json names an argument and marks it as optional
// (omitempty); the tag doc describes it. An argument is a text, a truth value, a whole number, a number, or a list of
// texts. SchemaOf and Decode read the same struct, so they reject the same arguments.

// argument is one field of such a struct.
type argument struct {
	name, doc string
	optional  bool
	index     int
	kind      kind
}

// kind is a type of arguments.
type kind struct {
	schema map[string]any
	words  string // as in "must be …"
	// read sets v from the JSON text. ok is false if the text is of another type.
	read func(data json.RawMessage, v reflect.Value) (ok bool)
}

var kinds = map[reflect.Type]kind{
	reflect.TypeFor[string](): {map[string]any{"type": "string"}, "a string", read[string]},
	reflect.TypeFor[bool]():   {map[string]any{"type": "boolean"}, "true or false", read[bool]},
	reflect.TypeFor[float64](): {map[string]any{"type": "number", "minimum": -math.MaxFloat64,
		"maximum": math.MaxFloat64}, "a number", read[float64]},
	reflect.TypeFor[int](): {map[string]any{"type": "integer", "minimum": -wholeMost, "maximum": wholeMost},
		"a whole number", readWhole},
	reflect.TypeFor[[]string](): {map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
		"a list of strings", readTexts},
}

// wholeMost bounds whole numbers to those that every JSON reader keeps exactly.
const wholeMost = 1<<53 - 1

func read[T any](data json.RawMessage, v reflect.Value) bool {
	var x *T // stays nil for null
	if json.Unmarshal(data, &x) != nil || x == nil {
		return false
	}
	v.Set(reflect.ValueOf(*x))
	return true
}

func readWhole(data json.RawMessage, v reflect.Value) bool {
	var x *float64
	if json.Unmarshal(data, &x) != nil || x == nil || *x != math.Trunc(*x) || math.Abs(*x) > wholeMost {
		return false
	}
	v.SetInt(int64(*x))
	return true
}

func readTexts(data json.RawMessage, v reflect.Value) bool {
	var list []*string
	if json.Unmarshal(data, &list) != nil || list == nil {
		return false
	}
	texts := make([]string, len(list))
	for i, s := range list {
		if s == nil {
			return false
		}
		texts[i] = *s
	}
	v.Set(reflect.ValueOf(texts))
	return true
}

// argumentsOf reads the fields of a struct. A field that is no argument panics, so every test finds it.
func argumentsOf(t reflect.Type) []argument {
	var out []argument
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		k, ok := kinds[f.Type]
		if !ok || name == "" || f.Tag.Get("doc") == "" {
			panic(fmt.Sprintf("tool: field %s of %s is no argument: it needs the tags json and doc and a type that "+
				"arguments have", f.Name, t))
		}
		out = append(out, argument{name: name, doc: f.Tag.Get("doc"), optional: options == "omitempty", index: i,
			kind: k})
	}
	return out
}

// SchemaOf returns the JSON schema of the arguments that Decode reads into A.
func SchemaOf[A any]() json.RawMessage {
	properties, required := map[string]any{}, []string{}
	for _, a := range argumentsOf(reflect.TypeFor[A]()) {
		property := map[string]any{"description": a.doc}
		for k, v := range a.kind.schema {
			property[k] = v
		}
		properties[a.name] = property
		if !a.optional {
			required = append(required, a.name)
		}
	}
	schema, err := json.Marshal(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
		"properties": properties, "required": required, "additionalProperties": false,
	})
	if err != nil {
		panic(fmt.Sprintf("tool: encode a schema: %v", err)) // it consists of maps and texts
	}
	return schema
}

// Decode reads arguments. If SchemaOf[A] rejects them, the second result is the verdict on the call, which names the
// argument.
func Decode[A any](arguments json.RawMessage) (A, *Result) {
	var out A
	reject := func(format string, args ...any) (A, *Result) {
		return out, &Result{Status: BadArguments, Stderr: fmt.Sprintf(format, args...)}
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &given); err != nil || given == nil {
		return reject("arguments must be a JSON object")
	}
	v := reflect.ValueOf(&out).Elem()
	for _, a := range argumentsOf(v.Type()) {
		data, there := given[a.name]
		delete(given, a.name)
		switch {
		case !there && a.optional:
		case there && a.kind.read(data, v.Field(a.index)):
		case a.optional:
			return reject("%s must be %s", a.name, a.kind.words)
		default:
			return reject("%s is missing or not %s", a.name, a.kind.words)
		}
	}
	if len(given) > 0 {
		return reject("unexpected argument %q", first(given))
	}
	return out, nil
}

// first returns the first key in byte order.
func first(given map[string]json.RawMessage) string {
	least, found := "", false
	for k := range given {
		if !found || k < least {
			least, found = k, true
		}
	}
	return least
}
