package badinput

import (
	"cmp"
	"regexp"
	"strings"
)

// What the YAML library says of a value of the wrong kind, and of a field that a mapping does not have.
var (
	yamlKinds = regexp.MustCompile("(?s)cannot unmarshal !!(\\w+)(?: `(.*?)`)? into (\\S+)")
	yamlType  = regexp.MustCompile(` in type \S+`)
)

// yamlTags are the kinds of YAML's values by their tags.
var yamlTags = map[string]string{"seq": "a list", "map": "a mapping", "str": "a text", "int": "a whole number",
	"float": "a number", "bool": "true or false", "null": "nothing"}

// YAML returns a message of the YAML library in the words of those who write YAML. The library names Go's types.
// Messages of several lines become one.
func YAML(text string) string {
	text = yamlKinds.ReplaceAllStringFunc(text, func(found string) string {
		m := yamlKinds.FindStringSubmatch(found)
		return "must be " + nameKind(m[3]) + ", got " + cmp.Or(m[2], yamlTags[m[1]], m[1])
	})
	text = strings.TrimPrefix(yamlType.ReplaceAllString(text, ""), "yaml: unmarshal errors:\n  ")
	return strings.ReplaceAll(strings.TrimPrefix(text, "yaml: "), "\n  ", "; ")
}

// nameKind is what a value of the Go type with that name is in YAML.
func nameKind(name string) string {
	for begin, kind := range map[string]string{"[]": "a list", "int": "a whole number", "uint": "a whole number",
		"float": "a number", "string": "a text", "bool": "true or false", "time.Duration": "a duration such as 10s"} {
		if strings.HasPrefix(strings.TrimLeft(name, "*"), begin) {
			return kind
		}
	}
	return "a mapping"
}
