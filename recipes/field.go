package recipes

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// Field is one entry of the table of fields. The struct tags of Recipe and the table of slots define the fields.
type Field struct {
	Path     string // resample.roc.keep
	Name     string // keep
	Recorded string // the name in the canonical form, usually Name; files may use it too
	Doc      string // includes the unit
	Default  string // YAML; "" if none; a choice of a governor may have another default
	// Own returns an environment's own default as YAML, or "". It is nil if no environment has one.
	Own      func(env.Declaration) string
	Required bool     // the field has no default; a required section contains a required field
	Optional bool     // text that may be absent
	Nullable bool     // a section that is off when it is null or absent
	Quiet    bool     // left out of the canonical form at its default
	Single   bool     // a list that may be written without brackets if it has one value
	Min      *float64 // inclusive; applies to each element of a list or mapping
	Max      *float64 // inclusive
	Above    *float64 // exclusive lower limit
	Enum     []string
	// Meant maps names that people try to the one of Enum that has their meaning.
	Meant   map[string]string
	Keys    []string // allowed keys of a mapping
	Pattern string
	Only    []string // environments that have the field; nil = all
	Classes []string // Only as the tag names it: environments and classes
	Without string   // a field that excludes this one when it is set
	Spared  string   // a field, or FIELD=VALUE, that allows this section to be absent when it is set, or has the value
	Fields  []*Field // of a section, or of each element of a list of sections
	// Slot is the choice that the field makes, or nil if the field makes none.
	Slot *method.Slot
	// Governors are the slots whose choices decide whether the field is read.
	Governors []*Governor

	index int          // in the parent's struct
	param bool         // the parent's struct holds the field as a parameter of a choice, in the map at index
	typ   reflect.Type // not a pointer
}

// Governor is a slot that a field depends on. Param is the field's name among the slot's parameters.
type Governor struct {
	Slot  *method.Slot
	Param string
}

// IsSection reports whether the field holds other fields instead of a value.
func (f *Field) IsSection() bool { return f.typ.Kind() == reflect.Struct }

// IsList reports whether the field is a list of sections.
func (f *Field) IsList() bool {
	return f.typ.Kind() == reflect.Slice && f.typ.Elem().Kind() == reflect.Struct
}

// TypeName names the type of the field's values, in words.
func (f *Field) TypeName() string {
	switch f.typ.Kind() {
	case reflect.Struct:
		return "a mapping"
	case reflect.Slice:
		if f.IsList() {
			return "a list of mappings"
		}
		if f.Single {
			return "a name or a list of names"
		}
		if f.typ.Elem().Kind() == reflect.String {
			return "a list of names"
		}
		return "a list of whole numbers"
	case reflect.Map:
		if f.isSettings() {
			return "a mapping"
		}
		return "a mapping of numbers"
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// child returns the field with that present or recorded name inside a section, or nil.
func (f *Field) child(name string) *Field {
	for _, c := range f.Fields {
		if c.Name == name || c.Recorded == name {
			return c
		}
	}
	return nil
}

// find returns the field at a path below f, or nil.
func (f *Field) find(path string) *Field {
	for name := range strings.SplitSeq(path, ".") {
		if f = f.child(name); f == nil {
			return nil
		}
	}
	return f
}

// root returns the table of fields as a tree. It is made when it is first asked for.
var root = sync.OnceValue(table)

// table reads the struct tags, then attaches the slots to their fields.
func table() *Field {
	t := section("", reflect.TypeFor[Recipe]())
	slots := Slots()
	for i := range slots {
		t.attach(&slots[i])
	}
	return t
}

// attach links a slot to the field that holds its choice, and to the fields that depend on the choice. A slot without a
// field is a programming error; every test then panics.
func (f *Field) attach(s *method.Slot) {
	at := f.find(s.Name)
	if at == nil {
		panic("recipes: no field for slot " + s.Name)
	}
	if s.IsSwitch() {
		return
	}
	at.Slot, at.Enum = s, s.Names()
	section := f
	if i := strings.LastIndex(s.Name, "."); i >= 0 {
		section = f.find(s.Name[:i])
	}
	for _, c := range section.Fields {
		if s.Governs(c.Name) {
			c.Governors = append(c.Governors, &Governor{s, c.Name})
		}
	}
	for _, c := range s.Choices {
		for _, p := range c.Params {
			if section.child(p.Name) == nil {
				panic(fmt.Sprintf("recipes: %s %s reads %s, which is no field", s.Name, c.Name, p.Name))
			}
		}
	}
}

// Fields returns every field of a recipe in the order of the structs. A section comes before its contents.
func Fields() []*Field {
	var all []*Field
	var walk func(f *Field)
	walk = func(f *Field) {
		for _, c := range f.Fields {
			all = append(all, c)
			walk(c)
		}
	}
	walk(root())
	return all
}

// section reads the tags of a struct.
func section(path string, t reflect.Type) *Field {
	f := &Field{Path: path, typ: t}
	for i := range t.NumField() {
		s := t.Field(i)
		if slot := s.Tag.Get("params"); slot != "" {
			f.Fields = append(f.Fields, parameters(path, slot, i)...)
			continue
		}
		recorded, _, _ := strings.Cut(s.Tag.Get("json"), ",")
		if recorded == "" { // set by a constructor, not by a recipe
			continue
		}
		name := cmp.Or(s.Tag.Get("name"), recorded)
		c := leaf(s.Type)
		c.Path, c.Name, c.Recorded, c.index = join(path, name), name, recorded, i
		if c.IsSection() {
			c.Fields = section(c.Path, c.typ).Fields
		} else if c.IsList() {
			c.Fields = section(c.Path+"[]", c.typ.Elem()).Fields
		}
		c.readTags(s.Tag)
		f.Fields = append(f.Fields, c)
		f.Required = f.Required || c.Required
	}
	return f
}

// parameters returns the fields that the choices of a slot declare. A recipe holds their values in the map at index.
func parameters(path, slot string, index int) []*Field {
	var out []*Field
	for _, p := range method.Parameters(slot) {
		c := leaf(p.Type)
		c.Path, c.Name, c.Recorded, c.index, c.param = join(path, p.Name), p.Name, p.Name, index, true
		if c.IsSection() {
			c.Fields = section(c.Path, c.typ).Fields
		} else if c.IsList() {
			c.Fields = section(c.Path+"[]", c.typ.Elem()).Fields
		}
		for _, inner := range c.Fields {
			inner.Default = cmp.Or(p.Defaults[inner.Recorded], inner.Default)
		}
		c.readTags(p.Tag)
		out = append(out, c)
	}
	return out
}

// in returns the field's value in its section. A parameter that is not set has the zero value.
func (f *Field) in(section reflect.Value) reflect.Value {
	if !f.param {
		return section.Field(f.index)
	}
	at := reflect.New(f.valueType()).Elem()
	if v := section.Field(f.index).MapIndex(reflect.ValueOf(f.Name)); v.IsValid() {
		at.Set(v.Elem())
	}
	return at
}

// put stores a value that the caller got from in and changed. A plain struct field needs no store.
func (f *Field) put(section, value reflect.Value) {
	if !f.param {
		return
	}
	params := section.Field(f.index)
	if f.Nullable && value.IsNil() { // absent, as if the recipe did not name it
		if !params.IsNil() {
			params.SetMapIndex(reflect.ValueOf(f.Name), reflect.Value{})
		}
		return
	}
	if params.IsNil() {
		params.Set(reflect.MakeMap(params.Type()))
	}
	params.SetMapIndex(reflect.ValueOf(f.Name), value)
}

// valueType is the type of a field's value in its section.
func (f *Field) valueType() reflect.Type {
	if f.Nullable {
		return reflect.PointerTo(f.typ)
	}
	return f.typ
}

func leaf(t reflect.Type) *Field {
	if t.Kind() == reflect.Pointer {
		return &Field{typ: t.Elem(), Nullable: true}
	}
	return &Field{typ: t}
}

func (f *Field) readTags(tag reflect.StructTag) {
	f.Doc, f.Default, f.Pattern, f.Without = tag.Get("doc"), tag.Get("default"), tag.Get("pattern"), tag.Get("without")
	f.Spared = tag.Get("spared")
	f.Required = tag.Get("required") == "true"
	f.Optional, f.Quiet, f.Single = tag.Get("optional") == "true", tag.Get("quiet") == "true",
		tag.Get("single") == "true"
	if f.IsSection() && !f.Nullable {
		for _, c := range f.Fields {
			f.Required = f.Required || c.Required
		}
	}
	f.Min, f.Max, f.Above = limit(tag, "min"), limit(tag, "max"), limit(tag, "above")
	f.Enum, f.Keys, f.Classes = words(tag.Get("enum")), words(tag.Get("keys")), words(tag.Get("only"))
	for _, pair := range words(tag.Get("meant")) {
		if f.Meant == nil {
			f.Meant = map[string]string{}
		}
		name, means, _ := strings.Cut(pair, "=")
		f.Meant[name] = means
	}
	if list := tag.Get("list"); list != "" {
		f.Enum = lists[list]()
	}
	f.Own = ownDefaults[tag.Get("own")]
	f.Only = members(f.Classes)
	if f.isSettings() {
		f.Keys = settingNames()
	}
}

// lists are the names that the tag list refers to. The warm start's optimizer has decays too, without a slot.
var lists = map[string]func() []string{
	"decays": method.DecaySlot().Names,
	"tools":  tools.Names,
	"parts":  partNames,
}

// ownDefaults are the environments' own defaults that the tag own refers to.
var ownDefaults = map[string]func(env.Declaration) string{"tools": defaultTools}

// limit reads a numeric tag. A malformed tag is a programming error; every test then panics.
func limit(tag reflect.StructTag, key string) *float64 {
	s, ok := tag.Lookup(key)
	if !ok {
		return nil
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(fmt.Sprintf("recipes: tag %s: %v", key, err))
	}
	return &x
}

func words(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "|")
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// setDefaults sets the default of every field of a section that applies. Nullable sections stay off.
func (f *Field) setDefaults(v reflect.Value, s scope) {
	for _, c := range f.Fields {
		if !c.belongs(s) || c.Nullable {
			continue
		}
		at := c.in(v)
		if c.IsSection() {
			c.setDefaults(at, s)
			continue
		}
		if c.isSettings() {
			at.Set(reflect.ValueOf(c.defaultSettings(s.environment)))
			continue
		}
		text := c.defaultIn(s)
		if text == "" {
			continue
		}
		at.Set(c.parseDefault(text))
		c.put(v, at)
	}
}

// parseDefault reads a default. A malformed one is a programming error; every test then panics.
func (f *Field) parseDefault(text string) reflect.Value {
	v := reflect.New(f.typ)
	if err := yaml.Unmarshal([]byte(text), v.Interface()); err != nil {
		panic(fmt.Sprintf("recipes: default of %s: %v", f.Path, err))
	}
	return v.Elem()
}

// defaultIn returns the field's default under the given choices, as YAML, or "" if there is none.
func (f *Field) defaultIn(s scope) string {
	for _, g := range f.Governors {
		if c, ok := g.Slot.Choice(s.choices[g.Slot.Name]); ok {
			if p, _ := c.Param(g.Param); p.Default != "" {
				return p.Default
			}
		}
	}
	if f.Own != nil {
		return cmp.Or(f.Own(s.declaration()), f.Default)
	}
	return f.Default
}

// requiredIn reports whether the field must be given under the given choices.
func (f *Field) requiredIn(s scope) bool {
	return f.Required || f.demanded(s)
}

// demanded reports whether every governor has a choice and neither a choice nor the field has a default.
func (f *Field) demanded(s scope) bool {
	known := func(g *Governor) bool { return s.choices[g.Slot.Name] != "" }
	return len(f.Governors) > 0 && !f.Nullable &&
		!slices.ContainsFunc(f.Governors, func(g *Governor) bool { return !known(g) }) &&
		cmp.Or(f.defaultIn(s), f.Default) == ""
}
