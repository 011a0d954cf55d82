package badinput

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// JSON returns an error of encoding/json in the words of those who write JSON. Where a value is of the wrong kind, its
// own text names Go's types. JSON returns other errors as they are.
func JSON(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	text := fmt.Sprintf("must be %s, got %s", kindOf(wrong.Type), jsonKind(wrong.Value))
	if wrong.Field != "" {
		text = wrong.Field + ": " + text
	}
	return errors.New(text)
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
	case "number":
		return "a number"
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "bool":
		return "true or false"
	}
	return strings.TrimPrefix(value, "number ")
}
