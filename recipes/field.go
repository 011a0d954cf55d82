package recipes

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/rl/method"
)

// Field is one entry of the table that the struct tags of Recipe and the slot table spell out.
type Field struct {
	Path     string   // resample.roc.keep
	Name     string   // keep
	Doc      string   // with its unit
	Default  string   // YAML; "" if none; a choice of a governor may have another
	Required bool     // no default; for a section: something inside it is required
	Optional bool     // text that may be absent
	Nullable bool     // a section that null or absence turns off
	Quiet    bool     // left out of the canonical form at its default
	Min      *float64 // inclusive; of each element for a list or mapping
	Max      *float64 // inclusive
	Above    *float64 // exclusive lower limit
	Enum     []string
	Keys     []string // of a mapping
	Pattern  string
	Only     []string // environments that the field belongs to; nil = all
	Classes  []string // the same as the tag names them
	Without  string   // a field that, where it is set, leaves this one no place
	Fields   []*Field // of a section, or of each element of a list of sections
	// Slot is the choice that the field makes; nil if it makes none.
	Slot *method.Slot
	// Governors are the slots whose choice decides whether the field is read.
	Governors []*Governor

	index int          // in the parent's struct
	typ   reflect.Type // without pointer
}

// Governor is a slot that a field depends on, and the field's name among its parameters.
type Governor struct {
	Slot  *method.Slot
	Param string
}

// IsSection reports whether the field holds fields rather than a value.
func (f *Field) IsSection() bool { return f.typ.Kind() == reflect.Struct }

// IsList reports whether the field is a list of sections.
func (f *Field) IsList() bool {
	return f.typ.Kind() == reflect.Slice && f.typ.Elem().Kind() == reflect.Struct
}

// TypeName says in words what a value of the field must be.
func (f *Field) TypeName() string {
	switch f.typ.Kind() {
	case reflect.Struct:
		return "a mapping"
	case reflect.Slice:
		if f.IsList() {
			return "a list of mappings"
		}
		if f.typ.Elem().Kind() == reflect.String {
			return "a list of names"
		}
		return "a list of whole numbers"
	case reflect.Map:
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

// child returns the field of that name inside a section, or nil.
func (f *Field) child(name string) *Field {
	for _, c := range f.Fields {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// find returns the field of a path below f, or nil.
func (f *Field) find(path string) *Field {
	for name := range strings.SplitSeq(path, ".") {
		if f = f.child(name); f == nil {
			return nil
		}
	}
	return f
}

// root is the table, as a tree.
var root = table()

// table reads the tags, then puts the slots to their fields.
func table() *Field {
	t := section("", reflect.TypeFor[Recipe]())
	slots := Slots()
	for i := range slots {
		t.attach(&slots[i])
	}
	return t
}

// attach makes a field the place of a slot's choice and its neighbours depend on it. A slot without
// a field is a programming error that any test meets.
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

// Fields returns every field of a recipe, sections before their contents, in the order of the
// structs.
func Fields() []*Field {
	var all []*Field
	var walk func(f *Field)
	walk = func(f *Field) {
		for _, c := range f.Fields {
			all = append(all, c)
			walk(c)
		}
	}
	walk(root)
	return all
}

// section reads the tags of a struct.
func section(path string, t reflect.Type) *Field {
	f := &Field{Path: path, typ: t}
	for i := range t.NumField() {
		s := t.Field(i)
		name, _, _ := strings.Cut(s.Tag.Get("json"), ",")
		c := leaf(s.Type)
		c.Path, c.Name, c.index = join(path, name), name, i
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

func leaf(t reflect.Type) *Field {
	if t.Kind() == reflect.Pointer {
		return &Field{typ: t.Elem(), Nullable: true}
	}
	return &Field{typ: t}
}

func (f *Field) readTags(tag reflect.StructTag) {
	f.Doc, f.Default, f.Pattern, f.Without = tag.Get("doc"), tag.Get("default"), tag.Get("pattern"), tag.Get("without")
	f.Required = tag.Get("required") == "true"
	f.Optional, f.Quiet = tag.Get("optional") == "true", tag.Get("quiet") == "true"
	if f.IsSection() && !f.Nullable {
		for _, c := range f.Fields {
			f.Required = f.Required || c.Required
		}
	}
	f.Min, f.Max, f.Above = limit(tag, "min"), limit(tag, "max"), limit(tag, "above")
	f.Enum, f.Keys, f.Classes = words(tag.Get("enum")), words(tag.Get("keys")), words(tag.Get("only"))
	f.Only = members(f.Classes)
}

// limit reads a numeric tag; a malformed tag is a programming error that any test meets.
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

// setDefaults fills the fields of a section that belong there. Nullable sections stay off.
func (f *Field) setDefaults(v reflect.Value, s scope) {
	for _, c := range f.Fields {
		if !c.belongs(s) || c.Nullable {
			continue
		}
		at := v.Field(c.index)
		if c.IsSection() {
			c.setDefaults(at, s)
			continue
		}
		text := c.defaultIn(s)
		if text == "" {
			continue
		}
		if err := yaml.Unmarshal([]byte(text), at.Addr().Interface()); err != nil {
			panic(fmt.Sprintf("recipes: default of %s: %v", c.Path, err))
		}
	}
}

// defaultIn is the field's default beside the choices made, as YAML; "" if it has none.
func (f *Field) defaultIn(s scope) string {
	for _, g := range f.Governors {
		if c, ok := g.Slot.Choice(s.choices[g.Slot.Name]); ok {
			if p, _ := c.Param(g.Param); p.Default != "" {
				return p.Default
			}
		}
	}
	return f.Default
}

// requiredIn reports whether the field must be given beside the choices made.
func (f *Field) requiredIn(s scope) bool {
	return f.Required || f.demanded(s)
}

// demanded reports whether every governor's choice reads the field and none has a default for it.
func (f *Field) demanded(s scope) bool {
	known := func(g *Governor) bool { return s.choices[g.Slot.Name] != "" }
	return len(f.Governors) > 0 && !f.Nullable && !slices.ContainsFunc(f.Governors, func(g *Governor) bool { return !known(g) }) &&
		cmp.Or(f.defaultIn(s), f.Default) == ""
}
