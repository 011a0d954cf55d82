package recipes

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

// maxBytes bounds the text of a recipe. A real recipe has a few kilobytes.
const maxBytes = 1 << 20

// ParseCommitted reads and validates a recipe from a record, with overrides applied. Its environment is complete: files
// that it names are not read again. The error is of type Problems and holds every fault; then there is no recipe.
// Messages use file only as the name of the text.
func ParseCommitted(file string, data []byte, set []string) (*Recipe, error) {
	d := newDecoder(file)
	d.committed = true
	return d.parse(data, pairs(set, nil, nil))
}

func parse(file string, data []byte, overrides []override) (*Recipe, error) {
	return newDecoder(file).parse(data, overrides)
}

func newDecoder(file string) *decoder {
	return &decoder{file: file, source: embedded, origin: map[*yaml.Node]string{}, files: map[*yaml.Node]string{},
		where: map[string]*yaml.Node{}}
}

func (d *decoder) parse(data []byte, overrides []override) (*Recipe, error) {
	doc := d.document(data)
	if doc == nil {
		return nil, d.problems
	}
	d.where[""] = doc
	if doc = d.inherit(doc, nil); doc == nil {
		d.problems.sort()
		return nil, d.problems
	}
	for _, o := range overrides {
		d.apply(doc, o)
	}
	d.scope = scopeOf(doc)
	var r Recipe
	v := reflect.ValueOf(&r).Elem()
	root().setDefaults(v, d.scope)
	d.section(root(), doc, v)
	d.pin(&r)
	d.combinations(&r)
	if len(d.problems) > 0 {
		d.blameOverrides(data, overrides)
		d.problems.sort()
		return nil, d.problems
	}
	return &r, nil
}

// decoder walks the YAML nodes and the table of fields in parallel.
type decoder struct {
	file      string
	source    func(name string) ([]byte, bool) // the text of a recipe that is extended
	committed bool                             // the text comes from a record
	blameless bool                             // faults stay at their lines, whatever brings them
	scope     scope
	origin    map[*yaml.Node]string // nodes that an override set
	files     map[*yaml.Node]string // nodes that come from an extended file
	where     map[string]*yaml.Node // the node to blame, by path
	problems  Problems
}

// fail records a problem at a node. A nil node means the beginning of the document.
func (d *decoder) fail(at *yaml.Node, path, format string, args ...any) {
	p := Problem{File: d.file, Line: 1, Path: path, Message: fmt.Sprintf(format, args...)}
	if at != nil {
		if o := d.origin[at]; o != "" {
			p.File, p.Line = o, 0
		} else if at.Line > 0 {
			p.Line, p.Column = at.Line, at.Column
			p.File = cmp.Or(d.files[at], d.file)
		}
	}
	d.problems = append(d.problems, p)
}

// document returns the top mapping of the text's only document, or nil if there is a problem.
func (d *decoder) document(data []byte) *yaml.Node {
	if len(data) > maxBytes {
		d.fail(nil, "", "is %d bytes long, at most %d are read", len(data), maxBytes)
		return nil
	}
	if fault := badinput.Compressed(data); fault != "" {
		d.fail(&yaml.Node{}, "", "%s", fault)
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && isNull(doc.Content[0]) {
		d.fail(nil, "", "holds no recipe")
		return nil
	}
	if err != nil {
		d.syntax(data, err)
		return nil
	}
	if err := dec.Decode(&more); err == nil {
		d.fail(&more, "", "a second document; a recipe is one")
	} else if !errors.Is(err, io.EOF) {
		d.syntax(data, err)
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		d.fail(top, "", "must be a mapping, got %s", shown(top))
	}
	if len(d.problems) > 0 {
		return nil
	}
	rename(root(), top)
	return top
}

// rename replaces the names of entries in the canonical form with the names that recipes use.
func rename(f *Field, n *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		c := f.child(key.Value)
		if c == nil || key.Kind != yaml.ScalarNode {
			continue
		}
		key.Value = c.Name
		if c.IsSection() && value.Kind == yaml.MappingNode {
			rename(c, value)
		}
	}
}

// section reads a mapping into a struct.
func (d *decoder) section(f *Field, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.wrongType(f, n)
		return
	}
	seen := map[string]*yaml.Node{}
	d.pairs(f.Path, n, seen, func(key, value *yaml.Node) {
		c := f.child(key.Value)
		if c == nil {
			d.fail(key, join(f.Path, key.Value), "no such field%s", suggest(f, key.Value, nil, d.scope))
			return
		}
		d.where[c.Path] = key
		if why := c.outOfPlace(d.scope); why != "" {
			if !c.Nullable || !isNull(value) { // a section that is switched off can be absent anywhere
				d.fail(key, c.Path, "%s", why)
			}
			return
		}
		at := c.in(v)
		d.field(c, value, at)
		c.put(v, at)
	})
	for _, c := range f.Fields {
		if seen[c.Name] == nil && c.belongs(d.scope) && c.requiredIn(d.scope) {
			d.fail(d.blame(f.Path), c.Path, "is required")
		}
	}
}

// pairs visits the entries of a mapping. It rejects entries that YAML allows but a recipe does not.
func (d *decoder) pairs(path string, n *yaml.Node, seen map[string]*yaml.Node, visit func(key, value *yaml.Node)) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch first := seen[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			d.fail(key, path, "a key must be a plain name")
		case key.ShortTag() == "!!merge":
			d.fail(key, path, "merge keys are not part of the format")
		case first != nil:
			d.fail(key, join(path, key.Value), "is there twice; first on line %d", first.Line)
		default:
			seen[key.Value] = key
			visit(key, value)
		}
	}
}

// field reads one value.
func (d *decoder) field(f *Field, n *yaml.Node, v reflect.Value) {
	switch {
	case n.Kind == yaml.AliasNode:
		d.fail(n, f.Path, "anchors and aliases are not part of the format")
	case f.Nullable && isNull(n):
		v.SetZero()
	case f.Nullable:
		v.Set(reflect.New(f.typ))
		f.setDefaults(v.Elem(), d.scope)
		d.section(f, n, v.Elem())
	case f.IsSection():
		d.section(f, n, v)
	case f.IsList():
		d.sections(f, n, v)
	case f.typ.Kind() == reflect.Slice:
		d.list(f, n, v)
	case f.isSettings():
		d.settings(f, n, v)
	case f.typ.Kind() == reflect.Map:
		d.table(f, n, v)
	default:
		d.scalar(f, f.Path, n, v)
	}
}

// sections reads a list of sections. In the paths of its elements, the index replaces [].
func (d *decoder) sections(f *Field, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.wrongType(f, n)
		return
	}
	v.Set(reflect.MakeSlice(f.typ, len(n.Content), len(n.Content)))
	for i, c := range n.Content {
		element := section(fmt.Sprintf("%s[%d]", f.Path, i), f.typ.Elem())
		if c.Kind == yaml.AliasNode {
			d.fail(c, element.Path, "anchors and aliases are not part of the format")
			continue
		}
		d.where[element.Path] = c
		outer := d.scope
		d.scope = d.elementScope(f.typ.Elem(), c)
		element.setDefaults(v.Index(i), d.scope)
		d.section(element, c, v.Index(i))
		d.scope = outer
	}
}

func (d *decoder) list(f *Field, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.wrongType(f, n)
		return
	}
	v.Set(reflect.MakeSlice(f.typ, len(n.Content), len(n.Content)))
	element := &Field{typ: f.typ.Elem(), Min: f.Min, Max: f.Max, Enum: f.Enum}
	for i, c := range n.Content {
		d.scalar(element, fmt.Sprintf("%s[%d]", f.Path, i), c, v.Index(i))
	}
}

func (d *decoder) table(f *Field, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.wrongType(f, n)
		return
	}
	v.Set(reflect.MakeMap(f.typ)) // a mapping in the recipe replaces the whole default
	element := &Field{typ: f.typ.Elem(), Min: f.Min, Max: f.Max}
	d.pairs(f.Path, n, map[string]*yaml.Node{}, func(key, value *yaml.Node) {
		if !slices.Contains(f.Keys, key.Value) {
			d.fail(key, join(f.Path, key.Value), "no such key; there are %s", strings.Join(f.Keys, ", "))
			return
		}
		x := reflect.New(f.typ.Elem()).Elem()
		d.scalar(element, join(f.Path, key.Value), value, x)
		v.SetMapIndex(reflect.ValueOf(key.Value), x)
	})
}

// blame returns the node of the path, or of the nearest section above the path.
func (d *decoder) blame(path string) *yaml.Node {
	for {
		if n := d.where[path]; n != nil || path == "" {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}
