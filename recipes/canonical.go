package recipes

import (
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/schema"
)

// Canonical renders the recipe's one JSON form: every field that has a place in it, except quiet
// ones at their default. Quiet are fields younger than recipes that were run without them: what such
// a recipe resolves to keeps its digest. Their defaults never change.
func (r *Recipe) Canonical() ([]byte, error) {
	v := reflect.ValueOf(r).Elem()
	text, err := schema.Canonical(root.tree(v, r.scope()))
	if err != nil {
		return nil, fmt.Errorf("render recipe %s: %w", r.Name, err)
	}
	return text, nil
}

// scope reads the choices out of a resolved recipe.
func (r *Recipe) scope() scope {
	s := scope{environment: r.Environment.Name, choices: map[string]string{}, set: map[string]bool{"policy.checkpoint": r.Policy.Checkpoint != ""}}
	var walk func(f *Field, v reflect.Value)
	walk = func(f *Field, v reflect.Value) {
		for _, c := range f.Fields {
			at := v.Field(c.index)
			if c.Nullable && at.IsNil() {
				continue
			}
			if c.Slot != nil {
				s.choices[c.Path] = at.String()
			}
			if c.IsSection() {
				walk(c, reflect.Indirect(at))
			}
		}
	}
	walk(root, reflect.ValueOf(r).Elem())
	return s
}

// tree renders a section.
func (f *Field) tree(v reflect.Value, s scope) object {
	out := object{}
	for _, c := range f.Fields {
		at := v.Field(c.index)
		if !c.belongs(s) || c.Nullable && at.IsNil() {
			continue
		}
		at = reflect.Indirect(at)
		switch {
		case c.IsSection():
			if inner := c.tree(at, s); len(inner) > 0 || c.Nullable {
				out[c.Name] = inner
			}
		case c.IsList():
			if at.Len() > 0 {
				out[c.Name] = c.elements(at, s)
			}
		case !c.silent(at, s):
			out[c.Name] = at.Interface()
		}
	}
	return out
}

func (f *Field) elements(v reflect.Value, s scope) []object {
	out := make([]object, v.Len())
	for i := range out {
		out[i] = f.tree(v.Index(i), s)
	}
	return out
}

// silent reports whether a value is left out.
func (f *Field) silent(v reflect.Value, s scope) bool {
	if f.Optional {
		return v.IsZero()
	}
	if !f.Quiet {
		return false
	}
	standard := reflect.New(v.Type())
	if err := yaml.Unmarshal([]byte(f.defaultIn(s)), standard.Interface()); err != nil {
		panic(fmt.Sprintf("recipes: default of %s: %v", f.Path, err))
	}
	return reflect.DeepEqual(standard.Elem().Interface(), v.Interface())
}
