package main

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxColumns is the longest line; a tab counts as tabWidth columns.
const (
	maxColumns = 120
	tabWidth   = 4
)

// longLines returns the lines that are too long and could be broken. A line of one word, such as a link, cannot.
func longLines(path, text string, unbreakable map[int]bool) []finding {
	var out []finding
	for i, line := range strings.Split(text, "\n") {
		n := utf8.RuneCountInString(line) + (tabWidth-1)*strings.Count(line, "\t")
		if n <= maxColumns || unbreakable[i+1] || oneWord(line) {
			continue
		}
		out = append(out, finding{path, i + 1, "line of " + columns(n) + ", at most " + columns(maxColumns)})
	}
	return out
}

// oneWord tells whether a line holds, after marks of a comment or list, nothing that a space could break.
func oneWord(line string) bool {
	return len(strings.Fields(strings.TrimLeft(line, " \t/#*-"))) == 1
}

// badPhrases returns the refused phrases of a text that starts on a line.
func badPhrases(path string, line int, text string) []finding {
	var out []finding
	for _, f := range refused(text) {
		out = append(out, finding{path, line + f.line, `"` + f.text + `": write ` + f.rule.write})
	}
	return out
}

// A program writes what lies between these lines of a page, or between the first and the end of the page. Its text is
// checked where it is declared.
var (
	madeFrom = regexp.MustCompile(`^<!-- Made from .* -->$`)
	madeEnd  = regexp.MustCompile(`^<!-- end of .* -->$`)
)

// written blanks out what a program writes of a page, and keeps its lines.
func written(text string) string {
	lines := strings.Split(text, "\n")
	made := false
	for i, line := range lines {
		made = made && !madeEnd.MatchString(line) || madeFrom.MatchString(line)
		if made {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n")
}

// checkMarkdown returns the findings of a page, except in what a program writes. Tables and fenced blocks cannot be
// broken: a table has a row on each line, and a block shows output as it is.
func checkMarkdown(path, text string) []finding {
	text = written(text)
	unbreakable := map[int]bool{}
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		fence := strings.HasPrefix(trimmed, "```")
		if fence {
			fenced = !fenced
		}
		unbreakable[i+1] = fenced || fence || strings.HasPrefix(trimmed, "|") || strings.HasPrefix(trimmed, "<!--")
	}
	return append(badPhrases(path, 1, text), longLines(path, text, unbreakable)...)
}

// checkPlain returns the findings of a file in which nothing is excepted.
func checkPlain(path, text string) []finding {
	return append(badPhrases(path, 1, text), longLines(path, text, nil)...)
}

// checkHashed returns the findings of a file whose comments begin with #: YAML, shell, Makefile.
func checkHashed(path, text string) []finding {
	return append(badPhrases(path, 1, hashComments(text)), longLines(path, text, nil)...)
}

// comment is a # that starts a comment: at the start of a line or after a space, and before one or another #. A quoted
// string that holds such a # is taken for a comment too, which does no harm: it is text.
var comment = regexp.MustCompile(`(^|\s)#([#! ].*)?$`)

// hashComments blanks out all of a text but its comments, and keeps its lines.
func hashComments(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = comment.FindString(line)
	}
	return strings.Join(lines, "\n")
}

// checkPython returns the findings of a Python file: long lines, and refused phrases in comments and strings, of which
// docstrings are a kind.
func checkPython(path, text string) []finding {
	prose, _ := pythonProse(text)
	return append(badPhrases(path, 1, prose), longLines(path, text, nil)...)
}

// pythonProse blanks out all of a program but its comments and strings, and keeps its lines. It reports whether the
// last string is closed.
func pythonProse(text string) (prose string, closed bool) {
	var b strings.Builder
	quote := "" // the quotes that end the string that i is in; "#" in a comment
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\n':
			if len(quote) == 1 { // a comment ends here, and so does a string that should have been closed
				quote = ""
			}
			b.WriteByte(c)
			i++
		case quote == "#":
			b.WriteByte(c)
			i++
		case quote != "" && c == '\\' && i+1 < len(text) && text[i+1] != '\n':
			b.WriteString(text[i : i+2])
			i += 2
		case quote != "" && strings.HasPrefix(text[i:], quote):
			i += len(quote)
			quote = ""
			b.WriteByte(' ')
		case quote != "":
			b.WriteByte(c)
			i++
		case c == '#':
			quote = "#"
			i++
		case strings.HasPrefix(text[i:], `"""`), strings.HasPrefix(text[i:], `'''`):
			quote = text[i : i+3]
			i += 3
		case c == '"' || c == '\'':
			quote = string(c)
			i++
		default:
			i++
		}
	}
	return b.String(), quote == "" || quote == "#"
}
