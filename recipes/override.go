package recipes

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// override is one path=value pair, with the text that names it in messages.
type override struct {
	origin string // --set resample.roc.keep=4
	text   string // resample.roc.keep=4
}

// secretive are the sections with references to secrets. A message leaves out what an override sets in them, because a
// user may have written a secret itself.
var secretive = []string{"judge", "rollout.mcp", "engine.servers"}

// overrideOf returns the override of a --set flag.
func overrideOf(set string) override {
	path, _, _ := strings.Cut(set, "=")
	for _, section := range secretive {
		if path == section || strings.HasPrefix(path, section+".") {
			return override{origin: "--set " + path, text: set}
		}
	}
	return override{origin: "--set " + set, text: set}
}

// apply sets an override's value. It creates the sections on the path that are missing.
func (d *decoder) apply(top *yaml.Node, o override) {
	path, text, ok := strings.Cut(o.text, "=")
	if !ok || path == "" {
		d.failOverride(o, "", "must be path=value")
		return
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		d.failOverride(o, path, "the value is not YAML: "+strings.TrimPrefix(err.Error(), "yaml: "))
		return
	}
	value := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	if len(doc.Content) > 0 {
		value = doc.Content[0]
	}
	names := strings.Split(path, ".")
	if fault := unknown(names); fault != "" {
		d.failOverride(o, path, fault)
		return
	}
	if path == extendsField {
		d.failOverride(o, path, "belongs in a recipe's file: it is read before any other field")
		return
	}
	renamed(names, value)
	eachNode(value, func(n *yaml.Node) { d.origin[n] = o.origin })
	d.put(top, names, value, o.origin)
}

// renamed replaces older names in a path and its value with the present names.
func renamed(names []string, value *yaml.Node) {
	f := root()
	for i, name := range names {
		c := f.child(name)
		if c == nil {
			return // a key of a mapping of numbers
		}
		names[i], f = c.Name, c
	}
	if f.IsSection() && value.Kind == yaml.MappingNode {
		rename(f, value)
	}
}

func (d *decoder) failOverride(o override, path, message string) {
	d.problems = append(d.problems, Problem{File: o.origin, Path: path, Message: message})
}

// unknown says what is wrong with a path, or returns "". Any key below a mapping of numbers passes here; the mapping
// itself checks its keys.
func unknown(names []string) string {
	f := root()
	for i, name := range names {
		c := f.child(name)
		if f.IsList() {
			c = nil // the elements of a list have no path; a list is replaced as a whole
		}
		switch {
		case c == nil && !f.IsSection():
			return "no such field; " + f.Path + " is " + f.TypeName()
		case c == nil:
			return "no such field" + suggest(f, name, names[i+1:], scope{})
		case c.Keys != nil && i == len(names)-2:
			return ""
		}
		f = c
	}
	return ""
}

// put walks down to the last name and sets its value. It leaves a section that is not a mapping unchanged; the decoder
// reports it later.
func (d *decoder) put(n *yaml.Node, names []string, value *yaml.Node, origin string) {
	for i, name := range names {
		if n.Kind != yaml.MappingNode {
			return
		}
		at := index(n, name)
		if at < 0 {
			key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}
			d.origin[key] = origin
			n.Content = append(n.Content, key, d.emptySection(origin))
			at = len(n.Content) - 1
		}
		if i == len(names)-1 {
			d.origin[n.Content[at-1]] = origin
			n.Content[at] = value
			return
		}
		if isNull(n.Content[at]) {
			n.Content[at] = d.emptySection(origin)
		}
		n = n.Content[at]
	}
}

func (d *decoder) emptySection(origin string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	d.origin[n] = origin
	return n
}

// index returns the position of a key's value in a mapping's content, or −1.
func index(n *yaml.Node, key string) int {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Kind == yaml.ScalarNode && n.Content[i].Value == key {
			return i + 1
		}
	}
	return -1
}

// eachNode visits a node and everything below it.
func eachNode(n *yaml.Node, visit func(*yaml.Node)) {
	visit(n)
	for _, c := range n.Content {
		eachNode(c, visit)
	}
}
