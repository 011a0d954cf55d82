package recipes

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/rl/method"
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
	for _, e := range environments {
		rules = append(rules, environmentRule(e.name))
	}
	s["allOf"] = append(rules, slotRules(root)...)
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
		s["description"] = f.describe()
	}
	if f.Default != "" && !f.variesByChoice() {
		s["default"] = plain(f.Default)
	}
	switch f.typ.Kind() {
	case reflect.Struct:
		f.sectionSchema(s)
	case reflect.Slice:
		s["type"] = "array"
		if f.IsList() {
			s["items"] = section(f.Path+"[]", f.typ.Elem()).schema()
			break
		}
		s["items"] = (&Field{typ: f.typ.Elem(), Min: f.Min, Max: f.Max, Enum: f.Enum}).schema()
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
		if c.Required && c.Only == nil && len(c.Governors) == 0 {
			required = append(required, c.Name)
		}
	}
	s["properties"], s["additionalProperties"] = properties, false
	if rules := append(slotRules(f), withoutRules(f)...); len(rules) > 0 && f.Path != "" {
		s["allOf"] = rules
	}
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
		if c.Only != nil && c.Required && slices.Contains(c.Only, environment) {
			required = append(required, c.Name)
		}
		switch {
		case c.Only != nil && !slices.Contains(c.Only, environment):
			properties[c.Name] = false
		case c.IsSection():
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

// slotRules say, for each choice made in a section, which fields it leaves no place, demands, or
// gives defaults of its own.
func slotRules(f *Field) []any {
	var rules []any
	for _, at := range f.Fields {
		if at.Slot == nil {
			continue
		}
		for _, choice := range at.Slot.Choices {
			properties, required := f.effects(at, choice)
			if len(properties) == 0 && required == nil {
				continue
			}
			named := object{"properties": object{at.Name: object{"const": choice.Name}}}
			if at.Default != choice.Name { // the default is chosen by absence too
				named["required"] = []string{at.Name}
			}
			then := object{"properties": properties}
			if required != nil {
				then["required"] = required
			}
			rules = append(rules, object{"if": named, "then": then})
		}
	}
	return rules
}

// effects are what a choice asks of the fields beside it.
func (f *Field) effects(at *Field, choice method.Choice) (properties object, required []string) {
	properties = object{}
	for _, c := range f.Fields {
		i := slices.IndexFunc(c.Governors, func(g *Governor) bool { return g.Slot == at.Slot })
		if i < 0 {
			continue
		}
		p, reads := choice.Param(c.Governors[i].Param)
		switch last := i == len(c.Governors)-1; {
		case !reads:
			properties[c.Name] = false
		case p.Default != "":
			properties[c.Name] = object{"default": plain(p.Default)}
		case c.Default == "" && !c.Nullable && last:
			required = append(required, c.Name)
		}
	}
	return properties, required
}

// withoutRules leave fields no place where the field that brings them is set.
func withoutRules(f *Field) []any {
	properties := object{}
	for _, c := range f.Fields {
		if c.Without != "" {
			properties[c.Name] = false
		}
	}
	if len(properties) == 0 {
		return nil
	}
	for _, c := range f.Fields {
		if c.Optional {
			named := object{"required": []string{c.Name}, "properties": object{c.Name: object{"minLength": 1}}}
			return []any{object{"if": named, "then": object{"properties": properties}}}
		}
	}
	return nil
}

// describe is the field's documentation, with what the names of a choice mean.
func (f *Field) describe() string {
	if f.Slot == nil {
		return f.Doc
	}
	parts := make([]string, len(f.Slot.Choices))
	for i, c := range f.Slot.Choices {
		parts[i] = c.Name + ": " + c.Doc
	}
	return f.Doc + ". " + strings.Join(parts, "; ")
}

// variesByChoice reports whether a choice has a default of its own for the field.
func (f *Field) variesByChoice() bool {
	return slices.ContainsFunc(f.Governors, func(g *Governor) bool {
		return slices.ContainsFunc(g.Slot.Choices, func(c method.Choice) bool {
			p, _ := c.Param(g.Param)
			return p.Default != ""
		})
	})
}

// plain reads the YAML of a tag into plain values.
func plain(text string) any {
	var x any
	if err := yaml.Unmarshal([]byte(text), &x); err != nil {
		panic("recipes: tag value " + text + ": " + err.Error())
	}
	return x
}
