package toolcall

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// mostLevels bounds how far references and alternatives of a schema are followed: they may be recursive.
const mostLevels = 16

// kindNames are the names of types that schemas of some programs have, with those of JSON Schema.
var kindNames = map[string]string{"dict": "object", "float": "number", "double": "number", "int": "integer",
	"long": "integer", "bool": "boolean", "list": "array", "tuple": "array", "str": "string", "text": "string"}

// kinds returns the types that the schema of a tool allows for an argument; nil if it says none.
func (t Tool) kinds(argument string) (out []string) {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(t.Parameters, &schema) == nil && schema.Properties[argument] != nil {
		t.collect(schema.Properties[argument], 0, &out)
	}
	return out
}

// collect adds the types that a part of the schema allows.
func (t Tool) collect(part json.RawMessage, level int, out *[]string) {
	var s struct {
		Type  any               `json:"type"`
		Ref   string            `json:"$ref"`
		Any   []json.RawMessage `json:"anyOf"`
		One   []json.RawMessage `json:"oneOf"`
		All   []json.RawMessage `json:"allOf"`
		Enum  []json.RawMessage `json:"enum"`
		Const json.RawMessage   `json:"const"`
	}
	if level > mostLevels || json.Unmarshal(part, &s) != nil {
		return
	}
	several, _ := s.Type.([]any)
	for _, kind := range append(several, s.Type) {
		if name, ok := kind.(string); ok {
			name = strings.ToLower(name)
			*out = append(*out, cmp.Or(kindNames[name], name))
		}
	}
	for _, v := range append(s.Enum, s.Const) {
		if s.Type == nil && v != nil {
			*out = append(*out, kindOf(string(v)))
		}
	}
	if s.Ref != "" {
		t.collect(t.referenced(s.Ref), level+1, out)
	}
	for _, one := range slices.Concat(s.Any, s.One, s.All) {
		t.collect(one, level+1, out)
	}
}

// referenced returns the part of the schema that a reference names; nil if there is none.
func (t Tool) referenced(ref string) json.RawMessage {
	part := t.Parameters
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		var fields map[string]json.RawMessage
		if json.Unmarshal(part, &fields) != nil {
			return nil
		}
		part = fields[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	return part
}

// kindsOf are the types of JSON values by what they begin with; anything else is a number.
var kindsOf = map[byte]string{'n': "null", 't': "boolean", 'f': "boolean", '"': "string", '[': "array", '{': "object"}

func kindOf(value string) string { return cmp.Or(kindsOf[value[0]], "number") }

var (
	wholeNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	number      = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
)

// typed returns a text as the JSON value that its types allow. A text that fits none of them stays a text.
func typed(text string, kinds []string) string {
	short := strings.TrimSpace(text)
	allows := func(kind string) bool { return slices.Contains(kinds, kind) }
	switch {
	case allows("null") && (short == "null" || short == "None"):
		return "null"
	case allows("integer") && wholeNumber.MatchString(short), allows("number") && number.MatchString(short):
		return short
	case allows("boolean") && (strings.EqualFold(short, "true") || strings.EqualFold(short, "false")):
		return strings.ToLower(short)
	case allows("object") && strings.HasPrefix(short, "{"), allows("array") && strings.HasPrefix(short, "["):
		if json.Valid([]byte(short)) {
			return short
		}
		if v, n := pythonLiteral(short); n == len(short) {
			return v
		}
	}
	return Quote(text)
}

// untyped returns a text as the JSON value that it writes; a text that writes none stays a text.
func untyped(text string) string {
	if short := strings.TrimSpace(text); json.Valid([]byte(short)) && !strings.HasPrefix(short, `"`) {
		return short
	}
	return typed(text, []string{"object", "array"})
}

// arguments are the arguments of a call that are read one after the other.
type arguments struct {
	names, parts []string
	twice        string
}

// add adds an argument with its JSON value.
func (a *arguments) add(name, value string) {
	if slices.Contains(a.names, name) {
		a.twice = name
	}
	a.names, a.parts = append(a.names, name), append(a.parts, Quote(name)+": "+value)
}

// call returns the call of a tool with the arguments.
func (a *arguments) call(name string) Call {
	c := *a.begun(name)
	c.Arguments += "}"
	if a.twice != "" {
		c.Fault = "the argument " + Quote(a.twice) + " is given twice"
	}
	return c
}

// begun returns the call as far as it has come.
func (a *arguments) begun(name string) *Call {
	return &Call{Name: name, Arguments: "{" + strings.Join(a.parts, ", ")}
}
