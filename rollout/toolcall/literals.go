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
	return quote(s), ok
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

// group reads values up to a closing bracket.
func (l *literals) group(closing string, level int) (string, bool) {
	l.at++
	var parts []string
	for !l.skip(closing) {
		if len(parts) > 0 && !l.skip(",") {
			return "", false
		}
		if len(parts) > 0 && l.skip(closing) {
			break
		}
		v, ok := l.value(level + 1)
		if !ok {
			return "", false
		}
		parts = append(parts, v)
	}
	return "[" + strings.Join(parts, ", ") + "]", true
}

// mapping reads keys and values up to the closing brace.
func (l *literals) mapping(level int) (string, bool) {
	l.at++
	var a arguments
	for !l.skip("}") {
		if len(a.names) > 0 && !l.skip(",") {
			return "", false
		}
		if len(a.names) > 0 && l.skip("}") {
			break
		}
		key, ok := l.key()
		if !ok || !l.skip(":") {
			return "", false
		}
		v, ok := l.value(level + 1)
		if !ok {
			return "", false
		}
		a.add(key, v)
	}
	return a.call("").Arguments, true
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
	for ok {
		before := l.at
		l.skip("")
		more, follows := l.quoted()
		if !follows {
			l.at = before
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
	var b strings.Builder
	for i := len(mark); i < len(rest); {
		switch {
		case strings.HasPrefix(rest[i:], mark):
			l.at = len(l.text) - len(rest) + i + len(mark)
			return b.String(), true
		case rest[i] == '\\' && i+1 < len(rest) && !raw:
			n := unescape(&b, rest[i+1:])
			i += 1 + n
		default:
			b.WriteByte(rest[i])
			i++
		}
	}
	return "", false
}

// unescape writes what follows a backslash, and returns its length. Unknown escapes stay as they are, as in Python.
func unescape(b *strings.Builder, text string) int {
	plain := map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': `"`, 'b': "\b", 'f': "\f",
		'a': "\a", 'v': "\v", '0': "\x00", '\n': "", '/': "/"}
	if s, ok := plain[text[0]]; ok {
		b.WriteString(s)
		return 1
	}
	if digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[text[0]]; digits > 0 && len(text) > digits {
		if code, err := strconv.ParseUint(text[1:1+digits], 16, 32); err == nil && code <= utf8.MaxRune {
			b.WriteRune(rune(code))
			return 1 + digits
		}
	}
	b.WriteString("\\" + text[:1])
	return 1
}
