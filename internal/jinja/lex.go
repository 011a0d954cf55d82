package jinja

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind int

const (
	tokText  kind = iota // outside tags
	tokBegin             // {{ or {%
	tokEnd               // }} or %}
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
	tokEOF
)

// token is a part of a template. text of a string is its value.
type token struct {
	kind kind
	text string
	line int
}

// lexer cuts a template into tokens.
type lexer struct {
	rest   string
	line   int
	tokens []token
	begun  bool // something was read
	strip  bool // the tag before asks to remove white space after it
	trim   bool // the tag before was a block or a comment, so that a line end after it is removed
}

// syntaxError is the failure of a template that cannot be parsed, with its line.
func syntaxError(line int, format string, args ...any) failure {
	return failure{fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, args...))}
}

// lex cuts a template into tokens. Lines end in \n, and one at the end of the template is removed.
func lex(text string) []token {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	l := &lexer{rest: strings.TrimSuffix(text, "\n"), line: 1}
	for l.rest != "" {
		at := nextTag(l.rest)
		if at < 0 {
			l.text(l.rest, "")
			break
		}
		opening := l.rest[at : at+2]
		sign := ""
		if at+2 < len(l.rest) && (l.rest[at+2] == '-' || l.rest[at+2] == '+') {
			sign = l.rest[at+2 : at+3]
		}
		mode := sign
		if opening != "{{" && sign == "" {
			mode = "block"
		}
		l.text(l.rest[:at], mode)
		l.skip(at + 2 + len(sign))
		l.tag(opening)
	}
	return append(l.tokens, token{tokEOF, "", l.line})
}

// nextTag returns where the next tag begins, or −1.
func nextTag(text string) int {
	for i := range len(text) - 1 {
		if text[i] == '{' && strings.IndexByte("{%#", text[i+1]) >= 0 {
			return i
		}
	}
	return -1
}

// skip drops n bytes.
func (l *lexer) skip(n int) {
	l.line += strings.Count(l.rest[:n], "\n")
	l.rest = l.rest[n:]
}

// text appends text before a tag. mode is the sign of that tag, or "block" for a block or comment without one: the
// white space between such a tag and the beginning of its line is removed.
func (l *lexer) text(text, mode string) {
	begins := !l.begun
	l.begun = true
	if l.strip {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
	} else if l.trim && strings.HasPrefix(text, "\n") {
		text, begins = text[1:], true
	}
	switch mode {
	case "-":
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	case "block":
		line := text[strings.LastIndexByte(text, '\n')+1:]
		whole := len(line) < len(text) || begins
		if whole && strings.Trim(line, " \t") == "" {
			text = text[:len(text)-len(line)]
		}
	}
	l.strip, l.trim = false, false
	if text != "" {
		l.tokens = append(l.tokens, token{tokText, text, l.line})
	}
}

// tag reads the inside of a tag.
func (l *lexer) tag(opening string) {
	line := l.line
	if opening == "{#" {
		end := strings.Index(l.rest, "#}")
		if end < 0 {
			panic(syntaxError(line, "a comment is not closed"))
		}
		l.closing(l.rest[:end], end+2, true)
		return
	}
	closing := "}}"
	if opening == "{%" {
		closing = "%}"
	}
	l.tokens = append(l.tokens, token{tokBegin, opening, line})
	depth := 0
	for {
		l.skip(len(l.rest) - len(strings.TrimLeftFunc(l.rest, unicode.IsSpace)))
		if l.rest == "" {
			panic(syntaxError(line, "%s is not closed", opening))
		}
		body := strings.TrimLeft(l.rest[:1], "-+")
		if depth == 0 && strings.HasPrefix(l.rest[1-len(body):], closing) {
			sign := l.rest[:1-len(body)]
			l.tokens = append(l.tokens, token{tokEnd, closing, l.line})
			l.closing(sign, len(sign)+2, opening == "{%")
			if opening == "{%" && l.opensRaw() {
				l.trim = false // a line end after raw is text
				l.raw()
			}
			return
		}
		t, n := next(l.rest, l.line)
		if t.kind == tokOp {
			switch t.text {
			case "(", "[", "{":
				depth++
			case ")", "]", "}":
				depth--
			}
		}
		l.tokens = append(l.tokens, t)
		l.skip(n)
	}
}

// closing ends a tag whose last characters before its end are sign.
func (l *lexer) closing(sign string, n int, block bool) {
	l.strip = strings.HasSuffix(sign, "-")
	l.trim = block && !strings.HasSuffix(sign, "+")
	l.skip(n)
}

// opensRaw reports whether the last tag is raw, and removes it.
func (l *lexer) opensRaw() bool {
	n := len(l.tokens)
	if n < 3 || l.tokens[n-3].kind != tokBegin || l.tokens[n-2].text != "raw" {
		return false
	}
	l.tokens = l.tokens[:n-3]
	return true
}

// endRaw is the tag that ends raw, with its signs.
var endRaw = regexp.MustCompile(`\{%([-+]*)\s*endraw\s*([-+]*)%\}`)

// raw reads text up to endraw.
func (l *lexer) raw() {
	at := endRaw.FindStringSubmatchIndex(l.rest)
	if at == nil {
		panic(syntaxError(l.line, "raw is not closed"))
	}
	mode := "block"
	if at[2] < at[3] {
		mode = l.rest[at[2] : at[2]+1]
	}
	l.text(l.rest[:at[0]], mode)
	l.closing(l.rest[at[4]:at[5]], at[1], true)
}

// lexeme is a name, a number with a point or without, or an operator, the longest first.
var lexeme = regexp.MustCompile(`^(?:([_\pL][_\pL\p{Nd}]*)|([0-9]+\.[0-9]+)|([0-9]+)|` +
	`(==|!=|<=|>=|//|\*\*|[-+*/%~()\[\]{},.:|=<>]))`)

// next reads the token that a text begins with, and its length.
func next(text string, line int) (token, int) {
	if text[0] == '"' || text[0] == '\'' {
		return quotedString(text, line)
	}
	m := lexeme.FindStringSubmatch(text)
	for i, k := range []kind{tokName, tokFloat, tokInt, tokOp} {
		if m != nil && m[i+1] != "" {
			return token{k, m[0], line}, len(m[0])
		}
	}
	r, _ := utf8.DecodeRuneInString(text)
	panic(syntaxError(line, "unexpected character %q", r))
}

// quotedString reads a string with Python's escapes.
func quotedString(text string, line int) (token, int) {
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == text[0]:
			return token{tokString, b.String(), line}, i + 1
		case c != '\\' || i+1 >= len(text):
			b.WriteByte(c)
		default:
			i += escape(&b, text[i+1:], line)
		}
	}
	panic(syntaxError(line, "a string is not closed"))
}

// escape writes what follows a backslash, and returns how much of the text it took.
func escape(b *strings.Builder, text string, line int) int {
	plain := map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': `"`, 'a': "\a", 'b': "\b",
		'f': "\f", 'v': "\v", '\n': "", '0': "\x00"}
	if s, ok := plain[text[0]]; ok {
		b.WriteString(s)
		return 1
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[text[0]]
	if digits == 0 { // Python leaves unknown escapes as they are
		b.WriteString("\\" + text[:1])
		return 1
	}
	if len(text) < 1+digits {
		panic(syntaxError(line, "an escape in a string is cut short"))
	}
	code, err := strconv.ParseUint(text[1:1+digits], 16, 32)
	if err != nil || code > unicode.MaxRune {
		panic(syntaxError(line, "a string has the escape \\%s", text[:1+digits]))
	}
	b.WriteRune(rune(code))
	return 1 + digits
}
