package recipes

import (
	"bytes"
	"encoding/json"
	"reflect"

	"go.yaml.in/yaml/v3"
)

// schemaID names the published schema.
const schemaID = "https://github.com/ropewalk/ropewalk/recipes/schema.json"

// object is one JSON object; encoding/json writes its keys sorted.
type object = map[string]any

// Schema returns the JSON schema (draft 2020-12) of recipes, for editors and other programs.
// Parse checks all that it says, and the combinations of fields, which it cannot say.
func Schema() []byte {
	s := root.schema()
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = schemaID
	s["title"] = "Ropewalk recipe"
	s["description"] = "Composes a run out of independent choices. Rules over several fields are checked by ropewalk itself."
	var rules []any
	for _, e := range root.child("environment").child("name").Enum {
		rules = append(rules, environmentRule(e))
	}
	s["allOf"] = rules
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		panic(err) // maps of plain values always encode
	}
	return b.Bytes()
}

// schema describes one field.
func (f *Field) schema() object {
	s := object{}
	if f.Doc != "" {
		s["description"] = f.Doc
	}
	if f.Default != "" {
		s["default"] = plain(f.Default)
	}
	switch f.typ.Kind() {
	case reflect.Struct:
		f.sectionSchema(s)
	case reflect.Slice:
		s["type"] = "array"
		s["items"] = (&Field{typ: f.typ.Elem(), Min: f.Min, Max: f.Max}).schema()
		s["minItems"], s["uniqueItems"] = 1, true
	case reflect.Map:
		element := (&Field{typ: f.typ.Elem(), Min: f.Min, Max: f.Max}).schema()
		entries := object{}
		for _, k := range f.Keys {
			entries[k] = element
		}
		s["type"], s["properties"], s["additionalProperties"] = "object", entries, false
	default:
		f.scalarSchema(s)
	}
	return s
}

func (f *Field) sectionSchema(s object) {
	s["type"] = "object"
	if f.Nullable {
		s["type"] = []string{"object", "null"}
	}
	properties := object{}
	var required []string
	for _, c := range f.Fields {
		properties[c.Name] = c.schema()
		if c.Required && c.Only == nil {
			required = append(required, c.Name)
		}
	}
	s["properties"], s["additionalProperties"] = properties, false
	if required != nil {
		s["required"] = required
	}
}

func (f *Field) scalarSchema(s object) {
	switch f.typ.Kind() {
	case reflect.String:
		s["type"] = "string"
	case reflect.Bool:
		s["type"] = "boolean"
	case reflect.Float64:
		s["type"] = "number"
	default:
		s["type"] = "integer"
	}
	if f.Enum != nil {
		values := []any{}
		for _, e := range f.Enum {
			if s["type"] == "string" {
				values = append(values, e)
			} else {
				values = append(values, plain(e))
			}
		}
		s["enum"] = values
	}
	for name, x := range map[string]*float64{"minimum": f.Min, "maximum": f.Max, "exclusiveMinimum": f.Above} {
		if x != nil {
			s[name] = *x
		}
	}
	if f.Pattern != "" {
		s["pattern"] = f.Pattern
	}
}

// environmentRule requires what belongs to an environment and refuses what belongs to others.
func environmentRule(environment string) object {
	named := object{
		"required":   []string{"environment"},
		"properties": object{"environment": object{"required": []string{"name"}, "properties": object{"name": object{"const": environment}}}},
	}
	return object{"if": named, "then": root.demands(environment)}
}

// demands says what an environment asks of a section beyond the section's own schema.
func (f *Field) demands(environment string) object {
	s, properties := object{}, object{}
	var required []string
	for _, c := range f.Fields {
		switch {
		case !c.belongs(environment):
			properties[c.Name] = false
		case c.Only != nil && c.Required:
			required = append(required, c.Name)
		case c.Only == nil && c.IsSection():
			if inner := c.demands(environment); len(inner) > 0 {
				properties[c.Name] = inner
			}
		}
	}
	if len(properties) > 0 {
		s["properties"] = properties
	}
	if required != nil {
		s["required"] = required
	}
	return s
}

// plain reads the YAML of a tag into plain values.
func plain(text string) any {
	var x any
	if err := yaml.Unmarshal([]byte(text), &x); err != nil {
		panic("recipes: tag value " + text + ": " + err.Error())
	}
	return x
}
