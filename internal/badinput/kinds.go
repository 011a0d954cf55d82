package badinput

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Kinds says of which kind a value of JSON must be, and is, after the name of its field where it has one. The error's
// own text has Go's words.
func Kinds(wrong *json.UnmarshalTypeError) string {
	text := fmt.Sprintf("must be %s, got %s", kindOf(wrong.Type), jsonKind(wrong.Value))
	if wrong.Field != "" {
		text = wrong.Field + ": " + text
	}
	return text
}

// kindOf is what a value of a Go type is in JSON.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Pointer:
		return kindOf(t.Elem())
	}
	return "a whole number"
}

// jsonKind is a value as encoding/json names it, in the same words.
func jsonKind(value string) string {
	switch value {
	case "string":
		return "a text"
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "bool":
		return "true or false"
	}
	return value
}
