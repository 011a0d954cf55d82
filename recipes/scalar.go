package recipes

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/internal/spelling"
)

// scalar reads one plain value and checks it against the field's limits.
func (d *decoder) scalar(f *Field, path string, n *yaml.Node, v reflect.Value) {
	if n.Kind == yaml.AliasNode {
		d.fail(n, path, "anchors and aliases are not part of the format")
		return
	}
	if slices.Contains(mappings, f.Name) && n.Kind == yaml.MappingNode {
		n = jsonOf(n)
	}
	if n.Kind != yaml.ScalarNode || !tagFits(f.typ.Kind(), n.ShortTag()) {
		d.fail(n, path, "must be %s, got %s", f.TypeName(), shown(n))
		return
	}
	if f.typ.Kind() == reflect.Uint64 && strings.HasPrefix(n.Value, "-") {
		d.fail(n, path, "must be ≥ 0, got %s", shown(n))
		return
	}
	if err := n.Decode(v.Addr().Interface()); err != nil {
		d.fail(n, path, "must be %s that fits %d bits, got %s", f.TypeName(), f.typ.Size()*8, shown(n))
		return
	}
	if fault := f.limits(v); fault != "" {
		d.fail(n, path, "%s, got %s", fault, shown(n))
	}
}

// mappings are the names of the fields that hold JSON in a text, which may be written as a mapping: arguments of the
// user's own code, and what the columns of a file are.
var mappings = []string{"kwargs", "columns", "filter"}

// jsonOf returns a mapping as its JSON in a text, or as it is where JSON has no such value.
func jsonOf(n *yaml.Node) *yaml.Node {
	var value map[string]any
	err := n.Decode(&value)
	text, unfit := json.Marshal(value)
	if err != nil || unfit != nil {
		return n
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: string(text), Line: n.Line, Column: n.Column}
}

// tagFits reports whether a scalar with that YAML tag can be read as the Go kind.
func tagFits(k reflect.Kind, tag string) bool {
	switch k {
	case reflect.String:
		return tag == "!!str"
	case reflect.Bool:
		return tag == "!!bool"
	case reflect.Float64:
		return tag == "!!float" || tag == "!!int"
	}
	return tag == "!!int"
}

// limits returns the condition that the value breaks, or "".
func (f *Field) limits(v reflect.Value) string {
	if len(f.Enum) > 0 {
		if text := fmt.Sprint(v.Interface()); !slices.Contains(f.Enum, text) {
			return f.notAmong(text)
		}
		return ""
	}
	if f.Pattern != "" && !regexp.MustCompile(f.Pattern).MatchString(v.String()) {
		return "must match " + f.Pattern
	}
	var x float64
	switch v.Kind() {
	case reflect.Float64:
		x = v.Float()
	case reflect.Uint64:
		x = float64(v.Uint())
	case reflect.Int:
		x = float64(v.Int())
	default:
		return ""
	}
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "must be a finite number"
	case f.Min != nil && x < *f.Min:
		return "must be ≥ " + number(*f.Min)
	case f.Above != nil && x <= *f.Above:
		return "must be > " + number(*f.Above)
	case f.Max != nil && x > *f.Max:
		return "must be ≤ " + number(*f.Max)
	}
	return ""
}

func (f *Field) notAmong(text string) string {
	if len(f.Enum) == 1 {
		return "must be " + f.Enum[0]
	}
	list := "must be one of " + strings.Join(f.Enum, ", ")
	if means := f.Meant[strings.ToLower(text)]; means != "" {
		return list + " (did you mean " + means + "?)"
	}
	if other := f.otherChoice(text); other != "" {
		return list + " (" + text + " is a choice of " + other + ")"
	}
	if near := spelling.Nearest(text, f.Enum); near != "" {
		return list + " (did you mean " + near + "?)"
	}
	return list
}

// otherChoice returns the path of another field that makes the choice of that name, or "". People look for grpo among
// the losses.
func (f *Field) otherChoice(name string) string {
	if f.Slot == nil {
		return ""
	}
	for _, other := range Fields() {
		if other.Slot != nil && other.Name == f.Name && slices.Contains(other.Enum, name) {
			return other.Path
		}
	}
	return ""
}

func (d *decoder) wrongType(f *Field, n *yaml.Node) {
	d.fail(n, f.Path, "must be %s, got %s", f.TypeName(), shown(n))
}

// shown renders a node in a short form for a message.
func shown(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case isNull(n):
		return "nothing"
	}
	text := n.Value
	if r := []rune(text); len(r) > 40 {
		text = string(r[:40]) + "…"
	}
	if t := n.ShortTag(); t == "!!int" || t == "!!float" || t == "!!bool" {
		return text
	}
	return strconv.Quote(text)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// number renders a limit as a person would write it.
func number(x float64) string {
	if x == math.Trunc(x) {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}
