package choice

import (
	"fmt"
	"reflect"
)

// Switches describes the fields that a list of switches gives a section of recipes.
func Switches(list []Choice) []Field {
	out := make([]Field, len(list))
	for i, c := range list {
		out[i] = c.field()
	}
	return out
}

// field describes the field of a switch.
func (c Choice) field() Field {
	params := parametersOf(c)
	f := Field{Name: c.Name, Tag: reflect.StructTag(fmt.Sprintf("doc:%q", c.Field))}
	if c.Only != "" {
		f.Tag += reflect.StructTag(fmt.Sprintf(" only:%q", c.Only))
	}
	switch {
	case len(params) == 0:
		f.Type = reflect.TypeFor[bool]()
		f.Tag += ` default:"false" quiet:"true"`
	case c.scalar():
		f.Type = params[0].Type
		f.Tag += " " + params[0].Tag
		if f.Type.Kind() != reflect.Slice {
			f.Tag += reflect.StructTag(fmt.Sprintf(" default:%q", yaml(Values(c.Settings)[c.Name])))
		}
	default:
		f.Type, f.Defaults = reflect.PointerTo(reflect.TypeOf(c.Settings)), map[string]string{}
		values := Values(c.Settings)
		for _, p := range params {
			if p.Tag.Get("required") != "true" && p.Tag.Get("bare") != "true" {
				f.Defaults[p.Name] = yaml(values[p.Name])
			}
		}
	}
	return f
}

// scalar reports whether a recipe writes the switch as the value of its only parameter.
func (c Choice) scalar() bool {
	params := parametersOf(c)
	return len(params) == 1 && params[0].Name == c.Name
}

// On returns the settings of a switch that a recipe turns on. Settings of another type than the declared ones are an
// error.
func (c Choice) On(params Params) (settings any, on bool, err error) {
	v := reflect.ValueOf(params[c.Name])
	if !v.IsValid() || v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
		return nil, false, nil
	}
	declared := reflect.TypeOf(c.Settings)
	switch {
	case c.Settings != nil && c.scalar():
		settings, err = Params{c.Name: v.Interface()}.Into(c.Settings)
	case v.Kind() == reflect.Pointer && v.Elem().Type() == declared:
		settings = v.Elem().Interface()
	case v.Kind() == reflect.Bool && len(parametersOf(c)) == 0:
		settings = c.Settings
	default:
		err = fmt.Errorf("needs settings of the type %T, got %v", c.Settings, v.Type())
	}
	return settings, true, err
}

// Section returns the settings of that type which a recipe turns on under a name; nil where it does not.
func Section[S any](params Params, name string) *S {
	s, _ := params[name].(*S)
	return s
}
