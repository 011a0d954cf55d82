package recipes

import (
	"fmt"
	"reflect"

	"github.com/ropewalk/ropewalk/schema"
)

// Canonical renders the recipe's one JSON form. The form holds every field that applies to the recipe, except quiet
// fields at their default. A quiet field was added after recipes had been run without it, so leaving it out keeps the
// digests of those recipes. The default of a quiet field never changes.
func (r *Recipe) Canonical() ([]byte, error) {
	v := reflect.ValueOf(r).Elem()
	text, err := schema.Canonical(root().tree(v, r.scope()))
	if err != nil {
		return nil, fmt.Errorf("render recipe %s: %w", r.Name, err)
	}
	return text, nil
}

// scope reads the choices from a resolved recipe.
func (r *Recipe) scope() scope {
	s := scope{
		environment: r.Environment.Name, choices: map[string]string{},
		set:    map[string]bool{"policy.checkpoint": r.Policy.Checkpoint != ""},
		spared: map[string]bool{},
	}
	for _, p := range r.Environment.Parts {
		s.parts = append(s.parts, p.Name)
	}
	var walk func(f *Field, v reflect.Value)
	walk = func(f *Field, v reflect.Value) {
		for _, c := range f.Fields {
			at := c.in(v)
			if c.Nullable && at.IsNil() {
				continue
			}
			if c.Spared != "" && at.IsZero() && s.spares(c.Spared, r.shown) {
				s.spared[c.Path] = true
			}
			if c.Slot != nil {
				s.choices[c.Path] = at.String()
			}
			if c.IsSection() {
				walk(c, reflect.Indirect(at))
			}
		}
	}
	walk(root(), reflect.ValueOf(r).Elem())
	return s
}

// tree renders a section as a JSON object.
func (f *Field) tree(v reflect.Value, s scope) object {
	out := object{}
	for _, c := range f.Fields {
		at := c.in(v)
		if !c.belongs(s) || c.Nullable && at.IsNil() {
			continue
		}
		at = reflect.Indirect(at)
		switch {
		case c.IsSection():
			if inner := c.tree(at, s); len(inner) > 0 || c.Nullable {
				out[c.Recorded] = inner
			}
		case c.IsList():
			if at.Len() > 0 {
				out[c.Recorded] = c.elements(at, s)
			}
		case !c.silent(at, s):
			out[c.Recorded] = at.Interface()
		}
	}
	return out
}

func (f *Field) elements(v reflect.Value, s scope) []object {
	out := make([]object, v.Len())
	for i := range out {
		out[i] = f.tree(v.Index(i), s.elementScope(v.Index(i)))
	}
	return out
}

// silent reports whether the canonical form leaves out a value.
func (f *Field) silent(v reflect.Value, s scope) bool {
	if f.Optional {
		return v.IsZero()
	}
	if !f.Quiet {
		return false
	}
	return reflect.DeepEqual(f.parseDefault(f.defaultIn(s)).Interface(), v.Interface())
}
