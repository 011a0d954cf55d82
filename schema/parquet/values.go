package parquet

import (
	"reflect"
	"strings"
)

// columnName returns the name of a field's column.
func columnName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
	return name
}

// Value returns the value of a row's field; null is nil, as a value and as an element of a list.
func Value(row reflect.Value, f int) any {
	h, field := HolesOf(row.Type(), row.Type().Field(f)), row.Field(f)
	if !h.Any || field.IsNil() {
		return plainValue(field)
	}
	out := make([]any, field.Len())
	for at := 0; at < len(out); {
		end, null := h.Run(field.Addr().UnsafePointer(), at, len(out))
		for ; at < end; at++ {
			if !null {
				out[at] = field.Index(at).Interface()
			}
		}
	}
	return out
}

// plainValue returns a field's value; null is nil.
func plainValue(v reflect.Value) any {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
		return nil
	case v.Kind() == reflect.Pointer:
		return v.Elem().Interface()
	case v.Kind() == reflect.Slice && v.IsNil():
		return nil
	}
	return v.Interface()
}
