package recipes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Listed is one field of a resolved recipe. Values are compact JSON, or off.
type Listed struct {
	Path    string `json:"path"`
	Value   string `json:"value"`
	Default string `json:"default"` // "" if the field has none: a recipe must give it, or the program does not know it
	Doc     string `json:"doc"`
}

// off is the value of a section, or of a text, that a recipe does without.
const off = "off"

// Standard reports whether the field has its default.
func (l Listed) Standard() bool { return l.Value == l.Default }

// Plain writes a value for people: a JSON text without its quotes.
func Plain(value string) string {
	var text string
	if json.Unmarshal([]byte(value), &text) == nil {
		return text
	}
	return value
}

// List lists the fields of a resolved recipe in the order of docs/recipes.md. It reads the canonical form as any
// version of the program wrote it and validates nothing: fields that are not in the table of fields come last.
func List(document []byte) ([]Listed, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(document, &node); err != nil {
		return nil, fmt.Errorf("read the recipe: %w", err)
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(document, &top); err != nil {
		return nil, fmt.Errorf("read the recipe: %w", err)
	}
	l := lister{scope: scopeOf(node.Content[0])}
	l.section(root(), top)
	return append(l.out, l.unknown...), l.err
}

// lister collects the fields of one recipe.
type lister struct {
	scope        scope
	out, unknown []Listed
	err          error
}

// section lists a section's fields.
func (l *lister) section(f *Field, doc map[string]json.RawMessage) {
	rest := maps.Clone(doc)
	for _, c := range f.Fields {
		raw, present := doc[c.Recorded]
		if !present {
			raw, present = doc[c.Name]
		}
		delete(rest, c.Recorded)
		delete(rest, c.Name)
		if present = present && string(raw) != "null"; present || c.belongs(l.scope) {
			l.field(c, raw, present)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		l.unknown = append(l.unknown, Listed{Path: join(f.Path, name), Value: l.compact(rest[name])})
	}
}

// field lists a field that the recipe has, or that applies to it.
func (l *lister) field(c *Field, raw json.RawMessage, present bool) {
	switch {
	case c.Nullable && !present:
		l.add(c, off, off)
	case c.IsSection():
		if c.Nullable {
			l.add(c, "on", off)
		}
		if present || l.scope.environment != "" {
			l.section(c, l.object(c, raw, present))
		}
	case c.isSettings():
		inner := &Field{Path: c.Path, Fields: c.settingFields(l.scope.environment)}
		l.section(inner, l.object(c, raw, present))
	case present:
		l.add(c, l.compact(raw), l.standard(c))
	case c.Optional:
		l.add(c, off, off)
	case c.Quiet:
		l.add(c, l.standard(c), l.standard(c))
	}
}

func (l *lister) add(c *Field, value, standard string) {
	l.out = append(l.out, Listed{Path: c.Path, Value: value, Default: standard, Doc: c.Doc})
}

// object reads a section; an absent one is empty.
func (l *lister) object(c *Field, raw json.RawMessage, present bool) map[string]json.RawMessage {
	var out map[string]json.RawMessage
	if !present {
		return out
	}
	if err := json.Unmarshal(raw, &out); err != nil && l.err == nil {
		l.err = fmt.Errorf("read %s of the recipe: %w", c.Path, err)
	}
	return out
}

func (l *lister) compact(raw json.RawMessage) string {
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil && l.err == nil {
		l.err = fmt.Errorf("read the recipe: %w", err)
	}
	return out.String()
}

// standard is the field's default under the recipe's choices.
func (l *lister) standard(c *Field) string {
	text := c.defaultIn(l.scope)
	switch {
	case text == "" && c.Optional:
		return off
	case text == "":
		return ""
	}
	out, err := json.Marshal(c.parseDefault(text).Interface())
	if err != nil {
		panic(fmt.Sprintf("recipes: default of %s: %v", c.Path, err))
	}
	return string(out)
}
