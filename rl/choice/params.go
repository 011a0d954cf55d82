package choice

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Params are parameters by name, as a recipe sets them. The values have the types of the settings' fields.
type Params map[string]any

// Into returns a copy of the settings with the parameters put in place of their defaults. A parameter that the
// settings do not have, or whose value has another type, is an error.
func (p Params) Into(settings any) (any, error) {
	if settings == nil {
		settings = struct{}{}
	}
	out := reflect.New(reflect.TypeOf(settings)).Elem()
	out.Set(reflect.ValueOf(settings))
	for _, name := range slices.Sorted(maps.Keys(p)) { // so that an error does not depend on a map's order
		i := indexOf(out.Type(), name)
		if i < 0 {
			return nil, fmt.Errorf("no parameter %s", name)
		}
		v := reflect.ValueOf(p[name])
		if !v.IsValid() || !v.CanConvert(out.Field(i).Type()) || v.Kind() != out.Field(i).Kind() {
			return nil, fmt.Errorf("parameter %s must be %s, got %v", name, out.Field(i).Type(), p[name])
		}
		out.Field(i).Set(v.Convert(out.Field(i).Type()))
	}
	return out.Interface(), nil
}

// indexOf is the field of a settings struct that a parameter sets, or -1.
func indexOf(t reflect.Type, name string) int {
	for i := range t.NumField() {
		if parameter(t.Field(i)) == name {
			return i
		}
	}
	return -1
}

// parameter is the name that a field of a settings struct has in recipes; "" = none.
func parameter(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// Values returns the parameters of a settings struct by name, with the types that recipes hold.
func Values(settings any) Params {
	out := Params{}
	if settings == nil {
		return out
	}
	v := reflect.ValueOf(settings)
	for i := range v.NumField() {
		if name := parameter(v.Type().Field(i)); name != "" {
			out[name] = v.Field(i).Convert(basicType(v.Field(i).Type())).Interface()
		}
	}
	return out
}

// Field is one parameter of a list of choices, described as a struct field of a recipe is.
type Field struct {
	Name string
	Type reflect.Type      // bool, int, float64 or string, or a pointer to a section that may be absent
	Tag  reflect.StructTag // includes the default where all choices that have the parameter agree on it
	// Defaults are those of the parameters inside a section, as YAML.
	Defaults map[string]string
}

// Fields lists the parameters of the choices, in the order in which they first occur. It panics on a list that
// contradicts itself, which any test meets: a parameter with two types or two descriptions, or without one.
func Fields(choices []Choice) []Field {
	var out []Field
	for _, c := range choices {
		for _, f := range parametersOf(c) {
			i := slices.IndexFunc(out, func(g Field) bool { return g.Name == f.Name })
			switch {
			case i < 0 && f.Tag.Get("doc") == "":
				panic(fmt.Sprintf("choice %s: parameter %s has no description", c.Name, f.Name))
			case i < 0:
				out = append(out, f)
			case out[i].Type != f.Type:
				panic(fmt.Sprintf("choice %s: parameter %s has the type %v, and %v elsewhere", c.Name, f.Name, f.Type,
					out[i].Type))
			case f.Tag.Get("doc") != "":
				panic(fmt.Sprintf("choice %s: parameter %s is described twice", c.Name, f.Name))
			}
		}
	}
	for i := range out {
		if shared, ok := defaults(choices, out[i].Name); ok && out[i].Type.Kind() != reflect.Pointer {
			out[i].Tag += reflect.StructTag(fmt.Sprintf(" default:%q", shared))
		}
	}
	return out
}

// parametersOf lists a choice's parameters.
func parametersOf(c Choice) []Field {
	if c.Settings == nil {
		return nil
	}
	var out []Field
	t := reflect.TypeOf(c.Settings)
	for i := range t.NumField() {
		if name := parameter(t.Field(i)); name != "" {
			out = append(out, Field{Name: name, Type: basicType(t.Field(i).Type), Tag: t.Field(i).Tag})
		}
	}
	return out
}

// basicType is the type that a recipe holds for a field of a named basic type.
func basicType(t reflect.Type) reflect.Type {
	switch t.Kind() {
	case reflect.String:
		return reflect.TypeFor[string]()
	case reflect.Bool:
		return reflect.TypeFor[bool]()
	}
	return t
}

// defaults is the default of a parameter as YAML, if all choices that have it agree.
func defaults(choices []Choice, name string) (shared string, ok bool) {
	for _, c := range choices {
		v, has := Values(c.Settings)[name]
		if !has {
			continue
		}
		if text := yaml(v); ok && text != shared {
			return "", false
		} else {
			shared, ok = text, true
		}
	}
	return shared, ok
}

// Params lists what a choice of the list reads: the fields of the section that it names, then its own parameters.
// Those on whose default the choices differ carry the choice's own.
func (c Choice) Params(among []Choice) []Param {
	out := slices.Clone(c.Reads)
	values := Values(c.Settings)
	for _, f := range parametersOf(c) {
		p := Param{Name: f.Name}
		if _, same := defaults(among, f.Name); !same {
			p.Default = yaml(values[f.Name])
		}
		out = append(out, p)
	}
	return out
}

// yaml writes a default as recipes do.
func yaml(v any) string {
	if x, ok := v.(float64); ok {
		format := byte('f')
		if x != 0 && math.Abs(x) < 1e-6 {
			format = 'g'
		}
		return strconv.FormatFloat(x, format, -1, 64)
	}
	return fmt.Sprint(v)
}
