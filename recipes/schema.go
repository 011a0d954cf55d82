package recipes

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/env/environments"
	"github.com/ropewalk/ropewalk/rl/method"
)

// schemaID names the published schema.
const schemaID = "https://github.com/ropewalk/ropewalk/recipes/schema.json"

// object is one JSON object. encoding/json sorts its keys.
type object = map[string]any

// Schema returns the JSON schema (draft 2020-12) of recipes, for editors and other programs. Resolve checks everything
// that the schema checks. Resolve also checks the combinations of fields, which the schema cannot express.
func Schema() []byte {
	whole := root().schema()
	var rules []any
	for _, d := range environments.All {
		rules = append(rules, environmentRule(d.Name))
	}
	whole["allOf"] = append(rules, slotRules(root())...)
	delete(whole["properties"].(object), extendsField)
	s := object{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"$id":     schemaID,
		"title":   "Ropewalk recipe",
		"description": "Composes a run out of independent choices. Rules over several fields are checked by ropewalk " +
			"itself.",
		"type":  "object",
		"if":    object{"required": []string{extendsField}},
		"then":  object{"$ref": "#/$defs/extension"},
		"else":  object{"$ref": "#/$defs/recipe"},
		"$defs": object{"recipe": whole, "extension": extension(whole)},
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		panic(err) // a map of plain values always encodes
	}
	return b.Bytes()
}

// extension returns the schema of a recipe that extends others. Any part of a complete recipe may be missing, because
// it may be inherited. null removes an inherited entry.
func extension(whole object) object {
	s := relaxed(whole).(object)
	s["required"] = []string{extendsField, "name"}
	name := object{"type": "string", "enum": slices.Sorted(maps.Keys(extendable()))}
	s["properties"].(object)[extendsField] = object{
		"description": root().child(extendsField).Doc,
		"oneOf":       []any{name, object{"type": "array", "items": name, "minItems": 1}},
	}
	return s
}

// relaxed removes the requirements from a schema and allows null. An absent choice no longer means the default, because
// the choice may be inherited. The elements of a list keep their requirements, because a list is replaced as a whole.
func relaxed(x any) any {
	switch x := x.(type) {
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = relaxed(x[i])
		}
		return out
	case object:
		out := object{}
		for key, value := range x {
			switch key {
			case "if":
				out[key] = stated(value.(object))
			case "required", "anyOf":
			case "items":
				out[key] = value
			case "type":
				out[key] = value
				if name, ok := value.(string); ok {
					out[key] = []string{name, "null"}
				}
			case "enum":
				out[key] = append(slices.Clone(value.([]any)), nil)
			default:
				out[key] = relaxed(value)
			}
		}
		return out
	}
	return x
}

// stated returns a condition on properties that also requires the properties to be present.
func stated(condition object) object {
	out := maps.Clone(condition)
	if properties, ok := condition["properties"].(object); ok {
		out["required"] = slices.Sorted(maps.Keys(properties))
	}
	return out
}

// schema returns the schema of one field.
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
			s["items"] = elementSchema(section(f.Path+"[]", f.typ.Elem()))
			break
		}
		s["items"] = (&Field{typ: f.typ.Elem(), Min: f.Min, Max: f.Max, Enum: f.Enum}).schema()
		s["minItems"], s["uniqueItems"] = 1, true
		if f.Path == "rollout.tools" || f.Default == "[]" { // no tools, or no elements by default
			s["minItems"] = 0
		}
	case reflect.Map:
		if f.isSettings() {
			s["type"] = "object"
			break
		}
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
	var either []any
	for _, c := range f.Fields {
		properties[c.Name] = c.schema()
		must := c.Required && c.Only == nil && len(c.Governors) == 0
		switch {
		case c.Recorded != c.Name:
			properties[c.Recorded] = c.formerly()
			if must {
				one := func(name string) object { return object{"required": []string{name}} }
				either = append(either, object{"anyOf": []any{one(c.Name), one(c.Recorded)}})
			}
		case must && strings.Contains(c.Spared, "="):
			either = append(either, object{"anyOf": []any{object{"required": []string{c.Name}}, c.sparing()}})
		case must:
			required = append(required, c.Name)
		}
	}
	s["properties"], s["additionalProperties"] = properties, false
	if rules := slices.Concat(slotRules(f), withoutRules(f), either); len(rules) > 0 && f.Path != "" {
		s["allOf"] = rules
	}
	if required != nil {
		s["required"] = required
	}
}

// sparing returns the schema of a section in which a sibling has the value that allows the field to be absent.
func (f *Field) sparing() object {
	path, value, _ := strings.Cut(f.Spared, "=")
	name := path[strings.LastIndex(path, ".")+1:]
	return object{"required": []string{name}, "properties": object{name: object{"const": plain(value)}}}
}

// formerly returns the schema of the field under its older name.
func (f *Field) formerly() object {
	s := f.schema()
	s["deprecated"], s["description"] = true, "older name of "+f.Name
	return s
}

func (f *Field) scalarSchema(s object) {
	switch f.typ.Kind() {
	case reflect.String:
		s["type"] = "string"
		if slices.Contains(mappings, f.Name) {
			s["type"] = []string{"string", "object"}
		}
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

// environmentRule requires the fields that an environment needs and rejects the fields of other environments.
func environmentRule(environment string) object {
	named := object{
		"required": []string{"environment"},
		"properties": object{"environment": object{"required": []string{"name"},
			"properties": object{"name": object{"const": environment}}}},
	}
	return object{"if": named, "then": root().demands(environment)}
}

// demands returns what an environment requires of a section, in addition to the section's own schema.
func (f *Field) demands(environment string) object {
	s, properties := object{}, object{}
	var required []string
	for _, c := range f.Fields {
		if c.Only != nil && c.Required && c.Spared == "" && slices.Contains(c.Only, environment) {
			required = append(required, c.Name)
		}
		switch {
		case c.Only != nil && !slices.Contains(c.Only, environment):
			properties[c.Name] = false
		case c.isSettings():
			properties[c.Name] = c.settingsSchema(environment)
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

// slotRules returns one rule for each choice in a section. The rule names the fields that the choice excludes, the
// fields that it requires, and the defaults that it changes.
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
			if at.Default != choice.Name { // an absent choice means the default
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

// effects returns what a choice requires of the other fields of its section.
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

// withoutRules excludes each field when the field named by its tag "without" is set.
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

// describe returns the field's documentation, with the meaning of each name that the field can choose.
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

// variesByChoice reports whether any choice has its own default for the field.
func (f *Field) variesByChoice() bool {
	return slices.ContainsFunc(f.Governors, func(g *Governor) bool {
		return slices.ContainsFunc(g.Slot.Choices, func(c method.Choice) bool {
			p, _ := c.Param(g.Param)
			return p.Default != ""
		})
	})
}

// plain decodes the YAML of a tag into plain values.
func plain(text string) any {
	var x any
	if err := yaml.Unmarshal([]byte(text), &x); err != nil {
		panic("recipes: tag value " + text + ": " + err.Error())
	}
	return x
}
