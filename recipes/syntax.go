package recipes

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// yamlLine matches the line number in the YAML library's messages.
var yamlLine = regexp.MustCompile(`^yaml: (?:unmarshal errors:\s*)?line (\d+): `)

// parserFault matches the messages in which the YAML library counts lines from 0. Its other messages count from 1.
var parserFault = regexp.MustCompile(
	`^(did not find expected (<|node content|key|'-' indicator|',' or)|found undefined tag handle)`)

// remedies says what to do about the faults that the YAML library names by its own rules.
var remedies = []struct{ fault, remedy string }{
	{"mapping values are not allowed", "the line is indented deeper than the one above, or a text that holds a colon " +
		"needs quotes"},
	{"could not find expected ':'", "an entry is NAME: VALUE, with a space after the colon"},
	{"did not find expected key", "entries of a section begin in the same column"},
	{"found character that cannot start any token", "a text that begins with @ or ` needs quotes"},
	{"did not find expected node content", "a value is missing, or a bracket is not closed"},
	{"found unexpected end of stream", "a quote is not closed"},
	{"did not find expected ',' or", "a bracket is not closed, or a comma is missing"},
	{"control characters are not allowed", "a recipe is plain text"},
}

// syntax records that the text is not YAML, with the line and the remedy.
func (d *decoder) syntax(data []byte, err error) {
	text, line := err.Error(), 1
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
		if parserFault.MatchString(text) {
			line++
		}
	}
	text = strings.TrimPrefix(text, "yaml: ")
	line = min(line, 1+bytes.Count(bytes.TrimRight(data, "\n"), []byte("\n"))) // not behind the end
	switch odd, tab := lineOfOdd(data), lineOfTab(data, line); {
	case tab > 0 && (strings.Contains(text, "tab character") || strings.Contains(text, "start any token")):
		line, text = tab, "the line is indented with a tab; indent it with spaces"
	case odd > 0 && strings.Contains(text, "UTF-8"):
		line, text = odd, "the line is not UTF-8; save the file as UTF-8"
	default:
		for _, r := range remedies {
			if strings.HasPrefix(text, r.fault) {
				text += ": " + r.remedy
				break
			}
		}
	}
	d.fail(&yaml.Node{Line: line}, "", "is not YAML: %s", text)
}

// lineOfTab returns the first line, not above the one that is given, that is indented with a tab; 0 if there is none.
// The library names the line before it in some cases.
func lineOfTab(data []byte, from int) int {
	number := 0
	for line := range bytes.Lines(data) {
		number++
		indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
		if number >= from && bytes.ContainsRune(indent, '\t') {
			return number
		}
	}
	return 0
}

// lineOfOdd returns the first line that is not UTF-8; 0 if there is none.
func lineOfOdd(data []byte) int {
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if !utf8.Valid(line) {
			return number
		}
	}
	return 0
}
