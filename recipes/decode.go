package recipes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxBytes bounds a recipe's text; a real one has a few kilobytes.
const maxBytes = 1 << 20

// Parse reads and validates a recipe. The error is of type Problems and holds every fault; a
// recipe with a fault is not returned. file only names the text in messages.
func Parse(file string, data []byte) (*Recipe, error) {
	return ParseWith(file, data, nil)
}

// ParseWith is Parse after the overrides (path=value, the value as YAML) were put in place, in
// their order.
func ParseWith(file string, data []byte, set []string) (*Recipe, error) {
	overrides := make([]override, len(set))
	for i, s := range set {
		overrides[i] = override{origin: "--set " + s, text: s}
	}
	return parse(file, data, overrides)
}

func parse(file string, data []byte, overrides []override) (*Recipe, error) {
	d := &decoder{file: file, origin: map[*yaml.Node]string{}, where: map[string]*yaml.Node{}}
	doc := d.document(data)
	if doc == nil {
		return nil, d.problems
	}
	d.where[""] = doc
	moveEngine(doc)
	for _, o := range overrides {
		d.apply(doc, o)
	}
	d.scope = scopeOf(doc)
	var r Recipe
	v := reflect.ValueOf(&r).Elem()
	root.setDefaults(v, d.scope)
	d.section(root, doc, v)
	d.combinations(&r)
	if len(d.problems) > 0 {
		d.problems.sort()
		return nil, d.problems
	}
	return &r, nil
}

// moveEngine puts the engine where it is read now: recipes in older records name it within policy.
func moveEngine(doc *yaml.Node) {
	if lookup(doc, "engine") != nil {
		return
	}
	policy := lookup(doc, "policy")
	if policy == nil || policy.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(policy.Content); i += 2 {
		if key, value := policy.Content[i], policy.Content[i+1]; key.Value == "engine" && value.Value == EngineCPU {
			policy.Content = slices.Delete(policy.Content, i, i+2)
			section := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: key.Line, Column: key.Column,
				Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: "kind", Line: key.Line, Column: key.Column}, value}}
			doc.Content = append(doc.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "engine", Line: key.Line, Column: key.Column}, section)
			return
		}
	}
}

// decoder walks the YAML nodes beside the table of fields.
type decoder struct {
	file     string
	scope    scope
	origin   map[*yaml.Node]string // nodes that an override brought
	where    map[string]*yaml.Node // the node to blame, by path
	problems Problems
}

// fail records a problem at a node; nil stands for the head of the document.
func (d *decoder) fail(at *yaml.Node, path, format string, args ...any) {
	p := Problem{File: d.file, Line: 1, Path: path, Message: fmt.Sprintf(format, args...)}
	if at != nil {
		if o := d.origin[at]; o != "" {
			p.File, p.Line = o, 0
		} else if at.Line > 0 {
			p.Line, p.Column = at.Line, at.Column
		}
	}
	d.problems = append(d.problems, p)
}

// yamlLine matches the place in the YAML library's messages.
var yamlLine = regexp.MustCompile(`^yaml: (?:unmarshal errors:\s*)?line (\d+): `)

// parserFault matches the faults whose lines the YAML library counts from 0, unlike the others'.
var parserFault = regexp.MustCompile(`^(did not find expected (<|node content|key|'-' indicator|',' or)|found undefined tag handle)`)

// document returns the top mapping of the only document, or nil after a problem.
func (d *decoder) document(data []byte) *yaml.Node {
	if len(data) > maxBytes {
		d.fail(nil, "", "is %d bytes long, at most %d are read", len(data), maxBytes)
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
		d.syntax(err)
		return nil
	}
	if err := dec.Decode(&more); err == nil {
		d.fail(&more, "", "a second document; a recipe is one")
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err)
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		d.fail(top, "", "must be a mapping, got %s", shown(top))
	}
	if len(d.problems) > 0 {
		return nil
	}
	return top
}

func (d *decoder) syntax(err error) {
	text, line := err.Error(), 1
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
		if parserFault.MatchString(text) {
			line++
		}
	}
	d.fail(&yaml.Node{Line: line}, "", "is not YAML: %s", strings.TrimPrefix(text, "yaml: "))
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
			d.fail(key, join(f.Path, key.Value), "no such field%s", suggest(f, key.Value, d.scope))
			return
		}
		d.where[c.Path] = key
		if why := c.outOfPlace(d.scope); why != "" {
			d.fail(key, c.Path, "%s", why)
			return
		}
		d.field(c, value, v.Field(c.index))
	})
	for _, c := range f.Fields {
		if seen[c.Name] == nil && c.belongs(d.scope) && c.requiredIn(d.scope) {
			d.fail(d.blame(f.Path), c.Path, "is required")
		}
	}
}

// pairs visits the entries of a mapping, refusing what YAML allows and a recipe does not.
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
	case f.typ.Kind() == reflect.Map:
		d.table(f, n, v)
	default:
		d.scalar(f, f.Path, n, v)
	}
}

// sections reads a list of sections; an index takes the place of [] in their paths.
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
		element.setDefaults(v.Index(i), d.scope)
		d.section(element, c, v.Index(i))
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
	v.Set(reflect.MakeMap(f.typ)) // what is written replaces the default whole
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

// blame returns the node of the path or of the nearest section above it.
func (d *decoder) blame(path string) *yaml.Node {
	for {
		if n := d.where[path]; n != nil || path == "" {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}
