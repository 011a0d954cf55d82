package recipes

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// scope is what decides which fields have a place in a recipe. It is read before everything else.
type scope struct {
	environment string            // "" when it is missing or unknown: then every field has a place
	choices     map[string]string // by slot; "" when unknown
	set         map[string]bool   // the fields named by Without that are there
}

// notHere says why a field of another environment is refused.
const notHere = "has no place in a recipe of %s: its trajectories are imported, so nothing is sampled, %strained or evaluated"

// runless are the further words about environments whose tool calls were run elsewhere.
var runless = map[string]string{OpenAI: "run, "}

// scopeOf reads the choices out of a document. A selector that is absent has its default.
func scopeOf(top *yaml.Node) scope {
	s := scope{choices: map[string]string{}, set: map[string]bool{}}
	for _, f := range Fields() {
		n := lookup(top, strings.Split(f.Path, ".")...)
		if f.Slot != nil {
			s.choices[f.Path] = chosen(f, n)
		}
		if f.Optional {
			s.set[f.Path] = n != nil && n.Kind == yaml.ScalarNode && n.Value != "" && !isNull(n)
		}
	}
	s.environment = s.choices["environment.name"]
	return s
}

// chosen is the name that a selector has, or "".
func chosen(f *Field, n *yaml.Node) string {
	switch {
	case n == nil:
		return f.Default
	case n.Kind == yaml.ScalarNode && slices.Contains(f.Enum, n.Value):
		return n.Value
	}
	return ""
}

// belongs reports whether the field has a place.
func (f *Field) belongs(s scope) bool { return f.outOfPlace(s) == "" }

// outOfPlace says why the field has no place, or "".
func (f *Field) outOfPlace(s scope) string {
	e := s.environment
	if f.Only != nil && e != "" && !slices.Contains(f.Only, e) {
		if (Environment{Name: e}).Imported() {
			return fmt.Sprintf(notHere, e, runless[e])
		}
		return fmt.Sprintf("has no place in a recipe of %s; it belongs to %s", e, strings.Join(f.Only, ", "))
	}
	if f.Without != "" && s.set[f.Without] {
		return fmt.Sprintf("has no place beside %s, which brings it", f.Without)
	}
	for _, g := range f.Governors {
		name := s.choices[g.Slot.Name]
		if readers := g.Slot.Readers(g.Param); name != "" && !slices.Contains(readers, name) {
			return fmt.Sprintf("has no place beside %s %s; it belongs to %s", strings.TrimSuffix(g.Slot.Name, ".name"), name, strings.Join(readers, ", "))
		}
	}
	return ""
}

// lookup walks down the mappings and returns the value of the last key, or nil.
func lookup(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		if n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		i := index(n, key)
		if i < 0 {
			return nil
		}
		n = n.Content[i]
	}
	return n
}
