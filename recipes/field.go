package recipes

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Field is one entry of the table that the struct tags of Recipe spell out.
type Field struct {
	Path     string   // resample.roc.keep
	Name     string   // keep
	Doc      string   // with its unit
	Default  string   // YAML; "" if none
	Required bool     // no default; for a section: something inside it is required
	Nullable bool     // a section that null or absence turns off
	Min      *float64 // inclusive; of each element for a list or mapping
	Max      *float64 // inclusive
	Above    *float64 // exclusive lower limit
	Enum     []string
	Keys     []string // of a mapping
	Pattern  string
	Only     []string // environments that the field belongs to; nil = all
	Fields   []*Field // of a section

	index int          // in the parent's struct
	typ   reflect.Type // without pointer
}

// IsSection reports whether the field holds fields rather than a value.
func (f *Field) IsSection() bool { return f.typ.Kind() == reflect.Struct }

// TypeName says in words what a value of the field must be.
func (f *Field) TypeName() string {
	switch f.typ.Kind() {
	case reflect.Struct:
		return "a mapping"
	case reflect.Slice:
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

// belongs reports whether the field has a place in recipes of that environment; with an
// unknown environment every field has.
func (f *Field) belongs(environment string) bool {
	return f.Only == nil || environment == "" || slices.Contains(f.Only, environment)
}

// root is the table, as a tree.
var root = section("", reflect.TypeFor[Recipe]())

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
	f.Doc, f.Default, f.Pattern = tag.Get("doc"), tag.Get("default"), tag.Get("pattern")
	f.Required = tag.Get("required") == "true"
	if f.IsSection() && !f.Nullable {
		for _, c := range f.Fields {
			f.Required = f.Required || c.Required
		}
	}
	f.Min, f.Max, f.Above = limit(tag, "min"), limit(tag, "max"), limit(tag, "above")
	f.Enum, f.Keys, f.Only = words(tag.Get("enum")), words(tag.Get("keys")), words(tag.Get("only"))
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

// setDefaults fills the fields of a section that belong to the environment. Nullable sections
// stay off.
func (f *Field) setDefaults(v reflect.Value, environment string) {
	for _, c := range f.Fields {
		if !c.belongs(environment) || c.Nullable {
			continue
		}
		at := v.Field(c.index)
		if c.IsSection() {
			c.setDefaults(at, environment)
			continue
		}
		if c.Default == "" {
			continue
		}
		if err := yaml.Unmarshal([]byte(c.Default), at.Addr().Interface()); err != nil {
			panic(fmt.Sprintf("recipes: default of %s: %v", c.Path, err))
		}
	}
}
