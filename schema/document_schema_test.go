package schema

import (
	"fmt"
	"reflect"
	"strings"
)

// forms are the regular expressions of texts and the bounds of numbers, by the tag form.
var forms = map[string]map[string]any{
	"digest": {"pattern": digestForm.String()},
	"run":    {"pattern": "^([a-z0-9][a-z0-9._-]{0,127})?$"},
	"step":   {"pattern": "^(init|0|[1-9][0-9]*)?$"},
	"stage":  {"pattern": stageForm.String()},
	"file":   {"pattern": fileForm.String()},
	"major":  {"const": Major},
	"minor":  {"minimum": 1},
}

// documentSchema makes a JSON schema from the fields of a document. It allows further fields, which later minor
// versions may have.
func documentSchema[T any](name string) map[string]any {
	out := schemaOf(reflect.TypeFor[T]())
	out["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	out["title"] = fmt.Sprintf("Ropewalk %s, format %d.%d", name, Major, Version)
	return out
}

func schemaOf(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		inner := schemaOf(t.Elem())
		inner["type"] = []any{inner["type"], "null"}
		return inner
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Struct:
		properties, required := map[string]any{}, []any{}
		for _, f := range documentFields(t) {
			properties[f.Name] = f.schema
			if !f.Optional {
				required = append(required, f.Name)
			}
		}
		return map[string]any{"type": "object", "properties": properties, "required": required}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	}
	return map[string]any{"type": "integer"}
}

// fieldDoc describes a field of a document.
type fieldDoc struct {
	Name     string
	Optional bool // it may be absent
	Since    string
	Doc      string

	schema map[string]any
}

// documentFields describes the fields of a type of documents, in their order; fields of an embedded type are the
// document's.
func documentFields(t reflect.Type) []fieldDoc {
	var out []fieldDoc
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			out = append(out, documentFields(f.Type)...)
			continue
		case name == "-":
			continue
		}
		field := fieldDoc{Name: name, Optional: options == "omitempty", Since: f.Tag.Get("since"),
			Doc: f.Tag.Get("doc"), schema: schemaOf(f.Type)}
		field.schema["description"] = field.Doc
		for key, value := range forms[f.Tag.Get("form")] {
			field.schema[key] = value
		}
		out = append(out, field)
	}
	return out
}
