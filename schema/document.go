package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// document is a manifest or head.
type document interface{ format() formatVersion }

// decodeDocument reads a manifest or head. It refuses a later major version by name. A document of this version must be
// exactly what Canonical writes for T; one of a later minor version may have further fields.
func decodeDocument[T document](what string, data []byte) (T, error) {
	// Most documents have no field that is unknown here. Their version is read with the rest, since a pass over the
	// text for the version alone takes much of the time.
	var v, none T
	strict := decodeStrict(data, &v)
	if strict == nil && v.format().check() == nil {
		return v, nil
	}
	version, err := documentVersion(data)
	if err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	if !version.newer() {
		return none, fmt.Errorf("%s: %w", what, strict)
	}
	var later T // what the strict reading has left in v does not count
	if err := decodeLater(data, &later); err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	return later, nil
}

// decodeLater parses canonical JSON that may have fields that v lacks. Every field of v must be in it.
func decodeLater(data []byte, v any) error {
	if err := checkCanonical(data); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("decode JSON: %w", err)
	}
	known, err := Canonical(v)
	if err != nil {
		return err
	}
	var part, whole any
	if err := errors.Join(json.Unmarshal(known, &part), json.Unmarshal(data, &whole)); err != nil {
		return fmt.Errorf("decode JSON: %w", err)
	}
	if !within(part, whole) {
		return errors.New("decode JSON: a field is missing, or its name has other letters")
	}
	return nil
}

// within reports whether the values in part are those of whole, which may have further fields in its objects.
func within(part, whole any) bool {
	switch p := part.(type) {
	case map[string]any:
		w, ok := whole.(map[string]any)
		for name, value := range p {
			inner, there := w[name]
			if ok = ok && there && within(value, inner); !ok {
				return false
			}
		}
		return ok
	case []any:
		w, _ := whole.([]any)
		return slices.EqualFunc(p, w, within)
	}
	return part == whole
}

// documentVersion reads only the version of a document, so that the error for a document of a later version says so and
// does not complain about unknown fields.
func documentVersion(data []byte) (formatVersion, error) {
	var v struct {
		Major *int `json:"version"`
		Minor int  `json:"schema_version"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return formatVersion{}, fmt.Errorf("decode JSON: %w", err)
	}
	if v.Major == nil {
		return formatVersion{}, errors.New("has no version")
	}
	out := formatVersion{*v.Major, v.Minor}
	return out, out.check()
}

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

// ManifestSchema returns the JSON schema of manifests.
func ManifestSchema() map[string]any { return documentSchema[Manifest]("manifest") }

// HeadSchema returns the JSON schema of heads.
func HeadSchema() map[string]any { return documentSchema[Head]("head") }

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
