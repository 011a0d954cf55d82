package recipes

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/internal/spelling"
)

// A recipe that extends others inherits their entries, except name and description. The files are laid over each other
// in the order in which the recipe names them, with the recipe itself last. Sections are merged entry by entry. Any
// other value of a later file replaces the value of an earlier file. Three rules keep such recipes short:
//
//   - null removes an inherited entry. The entry then has its default again; a section that may be off is off.
//   - A later file may make another choice (loss.name). Inherited fields that do not apply to the new choice are
//     removed. A field that does not apply is still a fault if the file itself sets it.
//   - A mapping of numbers is a value like any other, and is replaced as a whole.
//
// Only recipes that come with the program can be extended. A run keeps the text of one file, and that text resolves on
// every worker.

// extendsField is the entry in which a file names the recipes that it extends. It is read before everything else. A
// resolved recipe does not have it.
const extendsField = "extends"

// notInherited lists the entries that describe one file only.
var notInherited = []string{"name", "description"}

// inherit returns the document laid over everything that it extends, or nil if there is a problem. chain names the
// files that led to this document, so that inherit can detect a cycle.
func (d *decoder) inherit(doc *yaml.Node, chain []string) *yaml.Node {
	at := index(doc, extendsField)
	if at < 0 {
		return doc
	}
	names := d.extended(doc.Content[at])
	doc.Content = slices.Delete(doc.Content, at-1, at+1)
	if again := index(doc, extendsField); again >= 0 {
		d.fail(doc.Content[again-1], extendsField, "is there twice")
		return nil
	}
	var whole *yaml.Node
	for _, name := range names {
		base := d.base(name, chain)
		if base == nil {
			return nil
		}
		whole = overlay(whole, base)
	}
	if whole == nil {
		return nil
	}
	return overlay(whole, doc)
}

// extended returns the names in the value of extends, which is one name or a list.
func (d *decoder) extended(value *yaml.Node) []*yaml.Node {
	names := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode && len(value.Content) > 0 {
		names = value.Content
	}
	for _, n := range names {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
			d.fail(n, extendsField, "must be %s, got %s", root().child(extendsField).TypeName(), shown(n))
			return nil
		}
	}
	return names
}

// base reads an extended file together with the files that it extends.
func (d *decoder) base(at *yaml.Node, chain []string) *yaml.Node {
	name := at.Value
	if i := slices.Index(chain, name); i >= 0 {
		circle := append(slices.Clone(chain[i:]), name)
		d.fail(at, extendsField, "%s extends itself: %s", name, strings.Join(circle, " → "))
		return nil
	}
	text, ok := d.source(name)
	if !ok {
		d.fail(at, extendsField, "%s", unknownBase(name))
		return nil
	}
	file := newDecoder(fileOf(name))
	doc := file.document(text)
	d.problems = append(d.problems, file.problems...)
	if doc == nil {
		return nil
	}
	eachNode(doc, func(n *yaml.Node) { d.files[n] = file.file })
	if doc = d.inherit(doc, append(slices.Clone(chain), name)); doc == nil {
		return nil
	}
	for _, own := range notInherited {
		if i := index(doc, own); i >= 0 {
			doc.Content = slices.Delete(doc.Content, i-1, i+1)
		}
	}
	return doc
}

// overlay lays a file over the inherited entries. inherited may be nil.
func overlay(inherited, file *yaml.Node) *yaml.Node {
	if inherited == nil {
		return file
	}
	before := scopeOf(inherited)
	own := map[*yaml.Node]bool{}
	eachNode(file, func(n *yaml.Node) { own[n] = true })
	merge(root(), inherited, file)
	prune(root(), inherited, own, before, scopeOf(inherited))
	return inherited
}

// merge lays the entries of the mapping above over the mapping below. A key that a file holds twice stays twice, so
// that the later check of the whole mapping reports it.
func merge(f *Field, below, above *yaml.Node) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(above.Content); i += 2 {
		key, value := above.Content[i], above.Content[i+1]
		at, c := index(below, key.Value), f.child(key.Value)
		switch {
		case at < 0 || key.Kind != yaml.ScalarNode || seen[key.Value]:
			below.Content = append(below.Content, key, value)
		case c != nil && c.IsSection() && value.Kind == yaml.MappingNode && below.Content[at].Kind == yaml.MappingNode:
			below.Content[at-1] = key
			merge(c, below.Content[at], value)
		case c != nil && !c.Nullable && isNull(value):
			below.Content = slices.Delete(below.Content, at-1, at+1)
		default:
			below.Content[at-1], below.Content[at] = key, value
		}
		seen[key.Value] = true
	}
}

// prune removes inherited fields that applied before the file was laid over them and no longer apply after.
func prune(f *Field, n *yaml.Node, own map[*yaml.Node]bool, before, after scope) {
	var kept []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		c := f.child(key.Value)
		if c != nil && !own[key] && c.belongs(before) && !c.belongs(after) {
			continue
		}
		if c != nil && c.IsSection() && value.Kind == yaml.MappingNode {
			prune(c, value, own, before, after)
		}
		kept = append(kept, key, value)
	}
	n.Content = kept
}

// unknownBase says why a name cannot be extended.
func unknownBase(name string) string {
	text := "no recipe " + name + " comes with the program"
	if near := like(name, slices.Sorted(maps.Keys(extendable()))); len(near) > 0 {
		return text + didYouMean(spelling.OrList(near))
	}
	return text + ", and no other can be extended; `ropewalk methods` lists the presets"
}

// extendable returns the names that a file can extend.
func extendable() map[string]bool {
	names := map[string]bool{}
	for _, n := range slices.Concat(Builtin(), Presets(), bases()) {
		names[n] = true
	}
	return names
}
