package recipes

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// scope holds the values that decide which fields apply to a recipe. It is read before everything else.
type scope struct {
	environment string            // "" when it is missing or unknown; then every field applies
	parts       []string          // the environments of a mix
	choices     map[string]string // by slot; "" when unknown
	set         map[string]bool   // the fields named by Without and Spared that are set
	spared      map[string]bool   // the sections that are absent because such a field is set
}

// notHere says why a field of another environment is rejected.
const notHere = "has no place in a recipe of %s: its trajectories are imported, so nothing is sampled, run, " +
	"trained or evaluated"

// unmixed says why sections that single environments have do not apply to a mix.
var unmixed = map[string]string{"data": "it filters the one list of tasks of an environment, and a mix draws from " +
	"several; filter a file before a part names it"}

// scopeOf reads the choices from a document. An absent selector has its default.
func scopeOf(top *yaml.Node) scope {
	s := scope{choices: map[string]string{}, set: map[string]bool{}, spared: map[string]bool{}}
	for _, f := range Fields() {
		n := lookup(top, strings.Split(f.Path, ".")...)
		if f.Slot != nil {
			s.choices[f.Path] = chosen(f, n)
		}
		if f.Optional {
			s.set[f.Path] = n != nil && n.Kind == yaml.ScalarNode && n.Value != "" && !isNull(n)
		}
		if f.Spared != "" && n == nil && s.spares(f.Spared, func(path string) string {
			if at := lookup(top, strings.Split(path, ".")...); at != nil {
				return at.Value
			}
			return ""
		}) {
			s.spared[f.Path] = true
		}
	}
	s.environment, s.parts = s.choices["environment.name"], partsOf(top)
	return s
}

// spares reports whether a condition of Field.Spared holds. valueOf returns the value of a field as text.
func (s scope) spares(condition string, valueOf func(path string) string) bool {
	path, value, named := strings.Cut(condition, "=")
	if !named {
		return s.set[path]
	}
	return valueOf(path) == value
}

// chosen returns the name that a selector has, or "".
func chosen(f *Field, n *yaml.Node) string {
	switch {
	case n == nil:
		return f.Default
	case n.Kind == yaml.ScalarNode && slices.Contains(f.Enum, n.Value):
		return n.Value
	}
	return ""
}

// belongs reports whether the field applies to the recipe.
func (f *Field) belongs(s scope) bool { return f.outOfPlace(s) == "" }

// outOfPlace says why the field does not apply to the recipe, or returns "".
func (f *Field) outOfPlace(s scope) string {
	e := s.environment
	if f.Only != nil && e != "" && !slices.Contains(f.Only, e) {
		if (Environment{Name: e}).Imported() {
			return fmt.Sprintf(notHere, e)
		}
		if why := unmixed[f.Path]; why != "" && e == Mix {
			return fmt.Sprintf("has no place in a recipe of %s: %s", e, why)
		}
		return fmt.Sprintf("has no place in a recipe of %s; it belongs to %s", e, strings.Join(f.Only, ", "))
	}
	if s.spared[f.Path] {
		return "is absent with " + f.Spared
	}
	if f.Without != "" && s.set[f.Without] {
		return fmt.Sprintf("cannot be combined with %s, which brings it", f.Without)
	}
	for _, g := range f.Governors {
		name := s.choices[g.Slot.Name]
		if readers := g.Slot.Readers(g.Param); name != "" && !slices.Contains(readers, name) {
			return fmt.Sprintf("cannot be combined with %s %s; it belongs to %s",
				strings.TrimSuffix(g.Slot.Name, ".name"), name, strings.Join(readers, ", "))
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
