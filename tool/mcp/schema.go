package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/ropewalk/ropewalk/internal/rescue"
)

// The bounds of checking arguments. A schema can be made such that checking small arguments takes years, by subschemas
// that each refer twice to the next; costOf finds them.
const (
	argumentsMax  = 1 << 20 // bytes
	argumentsDeep = 16      // nesting of arguments
	schemaDeep    = 200     // nesting of a schema
	costMax       = 200_000 // subschemas that one path through the arguments may be checked against
)

// checker checks the arguments of a tool's calls against the tool's schema.
type checker struct{ schema *jsonschema.Schema }

// newChecker reads a schema. It refuses one that is no JSON schema of an object, that refers to other documents, or
// that is too costly to check.
func newChecker(text string) (*checker, error) {
	if len(text) > schemaMax {
		return nil, fmt.Errorf("the schema has %d bytes, and at most %d are allowed", len(text), schemaMax)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	top, ok := doc.(map[string]any)
	if !ok || top["type"] != "object" {
		return nil, errors.New(`the schema must be an object with the type "object"`)
	}
	if depth(top) > schemaDeep {
		return nil, fmt.Errorf("the schema is nested more than %d deep", schemaDeep)
	}
	if !cheap(top) {
		return nil, errors.New("the schema refers to itself too often to be checked")
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(jsonschema.SchemeURLLoader{}) // loads nothing
	out := &checker{}
	err = rescue.Do(func() (err error) {
		if err = c.AddResource(schemaAddress, doc); err != nil {
			return err
		}
		out.schema, err = c.Compile(schemaAddress)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the schema is no JSON schema: %w", err)
	}
	return out, nil
}

// schemaAddress names the schema within its compiler.
const schemaAddress = "tool:///arguments.json"

// check returns the arguments as an object. If the schema rejects them, it returns what is wrong instead, which names
// the argument.
func (c *checker) check(arguments json.RawMessage) (given map[string]any, fault string) {
	if len(arguments) > argumentsMax {
		return nil, fmt.Sprintf("arguments have %d bytes, and at most %d are allowed", len(arguments), argumentsMax)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(arguments))
	if err != nil {
		return nil, "arguments must be a JSON object"
	}
	given, ok := doc.(map[string]any)
	if !ok {
		return nil, "arguments must be a JSON object"
	}
	if depth(given) > argumentsDeep {
		return nil, fmt.Sprintf("arguments are nested more than %d deep", argumentsDeep)
	}
	var invalid *jsonschema.ValidationError
	err = c.schema.Validate(doc)
	if errors.As(err, &invalid) {
		return nil, faultOf(invalid)
	}
	if err != nil {
		return nil, "arguments: " + err.Error()
	}
	return given, ""
}

// faultOf says which argument is wrong and why. Of several faults it takes the first in the order of their places.
func faultOf(e *jsonschema.ValidationError) string {
	leaves := leavesOf(e)
	slices.SortFunc(leaves, func(a, b *jsonschema.ValidationError) int {
		return strings.Compare(textOf(a), textOf(b))
	})
	return textOf(leaves[0])
}

func leavesOf(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var out []*jsonschema.ValidationError
	for _, c := range e.Causes {
		out = append(out, leavesOf(c)...)
	}
	return out
}

var english = message.NewPrinter(language.English)

func textOf(e *jsonschema.ValidationError) string {
	at := strings.Join(e.InstanceLocation, ".")
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return within(at, slices.Min(k.Missing)) + " is missing"
	case *kind.AdditionalProperties:
		return "unexpected argument " + within(at, slices.Min(k.Properties))
	}
	if at == "" {
		at = "arguments"
	}
	return at + ": " + e.ErrorKind.LocalizedString(english)
}

func within(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// depth returns how deep a value is nested.
func depth(v any) int {
	most := 0
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			most = max(most, depth(inner))
		}
	case []any:
		for _, inner := range v {
			most = max(most, depth(inner))
		}
	default:
		return 0
	}
	return most + 1
}

// cheap reports whether a schema can be checked in bounded time. It counts the subschemas that are reached from the
// top, each as often as it is reached, and follows references until the arguments can be nested no deeper.
func cheap(top map[string]any) bool {
	w := walk{top: top, known: map[step]int{}, open: map[step]bool{}}
	return w.cost(top, "#", argumentsDeep) <= costMax
}

// walk counts the subschemas of one schema.
type walk struct {
	top   map[string]any
	known map[step]int
	open  map[step]bool // those that are being counted: a reference back to them leads nowhere
}

// step is a subschema, by its place, and how much deeper the arguments below it can be nested.
type step struct {
	at   string
	left int
}

// deeper are the keywords whose subschemas apply to parts of a value instead of the value.
var deeper = map[string]bool{"properties": true, "patternProperties": true, "additionalProperties": true,
	"items": true, "prefixItems": true, "contains": true, "unevaluatedProperties": true, "unevaluatedItems": true,
	"additionalItems": true, "propertyNames": true}

func (w walk) cost(v any, at string, left int) int {
	here := step{at, left}
	if n, ok := w.known[here]; ok {
		return n
	}
	if left < 0 || w.open[here] {
		return 0
	}
	w.open[here] = true
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n += w.part(v[key], key, at, left)
		}
	case []any:
		for i, inner := range v {
			n += w.cost(inner, fmt.Sprintf("%s/%d", at, i), left)
		}
	}
	delete(w.open, here)
	n = min(n, costMax+1)
	w.known[here] = n
	return n
}

// part returns the cost of one keyword of a subschema.
func (w walk) part(v any, key, at string, left int) int {
	switch {
	case key == "$defs" || key == "definitions": // counted where they are referred to
		return 0
	case key == "$ref" || key == "$dynamicRef" || key == "$recursiveRef":
		ref, _ := v.(string)
		target, ok := w.find(ref)
		if !ok { // an anchor: count it as the whole
			return w.cost(w.top, "#", left)
		}
		return w.cost(target, ref, left)
	case deeper[key]:
		left--
	}
	return w.cost(v, at+"/"+key, left)
}

// find returns the subschema that a pointer within the document names.
func (w walk) find(ref string) (any, bool) {
	if ref == "#" {
		return w.top, true
	}
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, false
	}
	var v any = w.top
	for name := range strings.SplitSeq(path, "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		inner, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = inner[name]; !ok {
			return nil, false
		}
	}
	return v, true
}
