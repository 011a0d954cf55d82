package recipes

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/environments"
)

// The settings of an environment (environment.settings) are not a struct of this package. Their fields are the ones
// that the environment declares.

// isSettings reports whether the field holds an environment's settings.
func (f *Field) isSettings() bool { return f.typ == reflect.TypeFor[env.Settings]() }

// settingNames returns the names of all environments' settings, in the order of environments.All.
func settingNames() []string {
	var names []string
	for _, d := range environments.All {
		for _, s := range d.Settings {
			if !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// kinds maps the kind of a setting to its type.
var kinds = map[reflect.Kind]reflect.Type{
	reflect.Int: reflect.TypeFor[int](), reflect.Float64: reflect.TypeFor[float64](),
	reflect.String: reflect.TypeFor[string](), reflect.Bool: reflect.TypeFor[bool](),
}

// settingFields returns the fields of the settings that an environment declares.
func (f *Field) settingFields(environment string) []*Field {
	var out []*Field
	for _, s := range declared(environment).Settings {
		out = append(out, &Field{Path: join(f.Path, s.Name), Name: s.Name, Doc: s.Doc, Default: s.Default, Min: s.Min,
			Max: s.Max, Enum: s.Enum, Quiet: s.Quiet, typ: kinds[s.Kind]})
	}
	return out
}

// defaultSettings returns an environment's settings with their default values, without the quiet ones.
func (f *Field) defaultSettings(environment string) env.Settings {
	out := env.Settings{}
	for _, s := range f.settingFields(environment) {
		if !s.Quiet {
			out[s.Name] = s.parseDefault(s.Default).Interface()
		}
	}
	return out
}

// settings reads the settings of the recipe's environment. A setting that is absent keeps its default.
func (d *decoder) settings(f *Field, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.wrongType(f, n)
		return
	}
	fields, out := f.settingFields(d.scope.environment), f.defaultSettings(d.scope.environment)
	d.pairs(f.Path, n, map[string]*yaml.Node{}, func(key, value *yaml.Node) {
		i := slices.IndexFunc(fields, func(s *Field) bool { return s.Name == key.Value })
		if i < 0 {
			parent := &Field{Path: f.Path, Fields: fields}
			d.fail(key, join(f.Path, key.Value), "no such field%s", suggest(parent, key.Value, nil, d.scope))
			return
		}
		d.where[fields[i].Path] = key
		x := reflect.New(fields[i].typ).Elem()
		d.scalar(fields[i], fields[i].Path, value, x)
		if fields[i].Quiet && x.IsZero() {
			delete(out, key.Value)
			return
		}
		out[key.Value] = x.Interface()
	})
	v.Set(reflect.ValueOf(out))
}

// pin has the environment complete settings that name files. The recipe of a record is complete, unless an override has
// changed its settings. A recipe with another fault is left as it is.
func (d *decoder) pin(r *Recipe) {
	if len(d.problems) > 0 {
		return
	}
	for _, c := range r.Environment.configured() {
		if pin := c.declaration.Pin; pin == nil || d.committed && !d.overridden(c.path) {
			continue
		}
		if err := c.declaration.Pin(c.settings); err != nil {
			d.fail(d.blame(c.path), c.path, "%v", err)
		}
	}
}

// overridden reports whether an override set a field or something below it.
func (d *decoder) overridden(path string) bool {
	for at, n := range d.where {
		if (at == path || strings.HasPrefix(at, path+".")) && d.origin[n] != "" {
			return true
		}
	}
	return false
}

// settingsSchema returns the schema of one environment's settings.
func (f *Field) settingsSchema(environment string) object {
	properties := object{}
	for _, s := range f.settingFields(environment) {
		properties[s.Name] = s.schema()
	}
	return object{"properties": properties, "additionalProperties": false}
}
