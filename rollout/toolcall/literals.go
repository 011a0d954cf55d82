package toolcall

import (
	"encoding/json"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// literals reads values as languages write them, and turns them into JSON. Strings are in the quotes of Python, or in
// one mark if quote is set: then keys are bare words.
type literals struct {
	text  string
	at    int
	quote string
}

// literalLevels bounds how deeply values are nested.
const literalLevels = 100

// pythonLiteral returns the literal of Python that a text begins with as JSON, and its length; 0 if there is none.
func pythonLiteral(text string) (value string, n int) {
	l := literals{text: text}
	if v, ok := l.value(0); ok {
		return v, l.at
	}
	return "", 0
}

// skip skips white space and takes a text if it follows.
func (l *literals) skip(part string) bool {
	l.at = len(l.text) - len(strings.TrimLeft(l.text[l.at:], spaces))
	if !strings.HasPrefix(l.text[l.at:], part) {
		return false
	}
	l.at += len(part)
	return true
}

var (
	numeral = regexp.MustCompile(`^[-+]?(0[xXoObB][0-9a-fA-F_]+|([0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)([eE][-+]?[0-9]+)?)`)
	word    = regexp.MustCompile(`^[\pL_][\pL\pN_.-]*`)
	words   = map[string]string{"True": "true", "true": "true", "False": "false", "false": "false", "None": "null",
		"null": "null"}
	escaped = regexp.MustCompile(`(?s)\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)`)
	escapes = map[string]string{"n": "\n", "t": "\t", "r": "\r", `\`: `\`, "'": "'", `"`: `"`, "b": "\b", "f": "\f",
		"a": "\a", "v": "\v", "0": "\x00", "\n": "", "/": "/"}
)

// value reads a value.
func (l *literals) value(level int) (string, bool) {
	l.skip("")
	rest := l.text[l.at:]
	switch {
	case rest == "" || level > literalLevels:
		return "", false
	case rest[0] == '[':
		return l.group("]", level)
	case rest[0] == '(' && l.quote == "":
		return l.group(")", level)
	case rest[0] == '{':
		return l.mapping(level)
	}
	if m := numeral.FindString(rest); m != "" {
		l.at += len(m)
		return numberText(m)
	}
	if m := word.FindString(rest); words[m] != "" {
		l.at += len(m)
		return words[m], true
	}
	s, ok := l.string()
	if end := strings.IndexAny(rest, ",}]"); !ok && l.quote != "" && end > 0 { // a text without its marks
		s, ok = strings.TrimSpace(rest[:end]), true
		l.at += end
	}
	return Quote(s), ok
}

// numberText writes a number of Python as JSON.
func numberText(text string) (string, bool) {
	text = strings.TrimPrefix(strings.ReplaceAll(text, "_", ""), "+")
	if n, ok := new(big.Int).SetString(text, 0); ok {
		return n.String(), true
	}
	sign := ""
	if text[0] == '-' {
		sign, text = "-", text[1:]
	}
	if text[0] == '.' {
		text = "0" + text
	}
	if whole, rest, point := strings.Cut(text, "."); point && (rest == "" || rest[0] == 'e' || rest[0] == 'E') {
		text = whole + ".0" + rest
	}
	return sign + text, json.Valid([]byte(sign + text))
}

// list reads items with commas between them up to what closes them, which a comma may precede.
func (l *literals) list(closing string, item func() bool) bool {
	for first := true; !l.skip(closing); first = false {
		if !first && !l.skip(",") {
			return false
		}
		if !first && l.skip(closing) {
			break
		}
		if !item() {
			return false
		}
	}
	return true
}

// group reads values up to a closing bracket.
func (l *literals) group(closing string, level int) (string, bool) {
	l.at++
	var parts []string
	ok := l.list(closing, func() bool {
		v, ok := l.value(level + 1)
		parts = append(parts, v)
		return ok
	})
	return "[" + strings.Join(parts, ", ") + "]", ok
}

// mapping reads keys and values up to the closing brace.
func (l *literals) mapping(level int) (string, bool) {
	l.at++
	var a arguments
	ok := l.list("}", func() bool {
		key, ok := l.key()
		if !ok || !l.skip(":") {
			return false
		}
		v, ok := l.value(level + 1)
		a.add(key, v)
		return ok
	})
	return a.call("").Arguments, ok
}

// key reads a key: a string, a number as its text or, next to a mark for strings, what is before the colon.
func (l *literals) key() (string, bool) {
	l.skip("")
	if l.quote != "" && !strings.HasPrefix(l.text[l.at:], l.quote) {
		key, _, ok := strings.Cut(l.text[l.at:], ":")
		if ok = ok && key != "" && !strings.ContainsAny(key, ",{}[]"); ok {
			l.at += len(key)
		}
		return strings.TrimSpace(key), ok
	}
	if m := numeral.FindString(l.text[l.at:]); m != "" {
		l.at += len(m)
		return m, true
	}
	return l.string()
}

// string reads a string. Strings of Python that follow each other are one.
func (l *literals) string() (string, bool) {
	if l.quote != "" {
		inside, found := strings.CutPrefix(l.text[l.at:], l.quote)
		s, _, closed := strings.Cut(inside, l.quote)
		if found = found && closed; found {
			l.at += len(s) + 2*len(l.quote)
		}
		return s, found
	}
	s, ok := l.quoted()
	for at := l.at; ok; at = l.at {
		l.skip("")
		more, follows := l.quoted()
		if !follows {
			l.at = at
			break
		}
		s += more
	}
	return s, ok
}

// quoted reads one string in quotes of one or three characters.
func (l *literals) quoted() (string, bool) {
	rest := l.text[l.at:]
	raw := strings.HasPrefix(rest, "r'") || strings.HasPrefix(rest, `r"`)
	if raw {
		rest = rest[1:]
	}
	if rest == "" || rest[0] != '\'' && rest[0] != '"' {
		return "", false
	}
	mark := rest[:1]
	if strings.HasPrefix(rest, strings.Repeat(mark, 3)) {
		mark = strings.Repeat(mark, 3)
	}
	for i := len(mark); i < len(rest); i++ {
		switch {
		case strings.HasPrefix(rest[i:], mark):
			l.at = len(l.text) - len(rest) + i + len(mark)
			if raw {
				return rest[len(mark):i], true
			}
			return escaped.ReplaceAllStringFunc(rest[len(mark):i], unescape), true
		case rest[i] == '\\' && !raw:
			i++
		}
	}
	return "", false
}

// unescape returns what a backslash and the text behind it mean. Unknown escapes stay as they are, as in Python.
func unescape(text string) string {
	if s, ok := escapes[text[1:]]; ok {
		return s
	}
	if code, err := strconv.ParseUint(text[2:], 16, 32); err == nil && code <= utf8.MaxRune {
		return string(rune(code))
	}
	return text
}
