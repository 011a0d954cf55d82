package view

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A link to the page may hold a condition that another person has written, and it is evaluated when the page is opened.
// So a condition compares the columns of one row, with functions whose cost and results are no larger than what they
// are given. It reads no other rows and makes no lists or texts of a size that it chooses; the engine does not
// bound those.

const mostCondition = 4096 // bytes

// functions may be called in a condition.
var functions = []string{"abs", "array_length", "cast", "ceil", "ceiling", "coalesce", "contains", "ends_with", "even",
	"exp", "floor", "greatest", "if", "ifnull", "instr", "isfinite", "isinf", "isnan", "json_extract",
	"json_extract_string", "least", "left", "len", "length", "list_contains", "list_has", "list_has_all",
	"list_has_any", "list_max", "list_min", "list_position", "list_sum", "ln", "log", "log10", "log2", "lower", "ltrim",
	"mod", "nullif", "position", "pow", "power", "prefix", "regexp_full_match", "regexp_matches", "right", "round",
	"rtrim", "sign", "sqrt", "starts_with", "strip_accents", "strlen", "strpos", "substr", "substring", "suffix",
	"trim", "trunc", "try_cast", "upper"}

// beforeBrackets are words that brackets may follow and that call nothing.
var beforeBrackets = []string{"all", "and", "any", "as", "between", "by", "case", "char", "decimal", "distinct", "else",
	"escape", "ilike", "in", "is", "like", "not", "numeric", "or", "similar", "some", "then", "to", "varchar", "when"}

// others are the words of queries, which read other rows.
var others = []string{"columns", "for", "from", "lambda", "over", "pivot", "recursive", "select", "table", "union",
	"unpivot", "values", "with"}

// checkCondition refuses a condition that could cost more than reading the rows.
func checkCondition(text string) error {
	if len(text) > mostCondition {
		return fmt.Errorf("where: the condition has %d bytes, more than %d", len(text), mostCondition)
	}
	before := "" // the name that the token before is
	for text != "" {
		word, quoted, n := nextWord(text)
		switch {
		case n < 0:
			return fmt.Errorf("where: cannot read %.40q", text)
		case word == "" && text[0] == '(' && before != "" && !slices.Contains(functions, before) &&
			!slices.Contains(beforeBrackets, before):
			return fmt.Errorf("where: a condition cannot call %s; it can call %s", before,
				strings.Join(functions, ", "))
		case strings.HasPrefix(text, "||"), text[0] == '$':
			return fmt.Errorf("where: a condition cannot hold %s", text[:min(2, len(text))])
		case !quoted && slices.Contains(others, word):
			return fmt.Errorf("where: a condition cannot hold %s: it is about the columns of one row", word)
		}
		if word != "" || !blank(text[:n]) {
			before = word
		}
		text = text[n:]
	}
	return nil
}

// blank reports whether a token stands for white space: itself, or a comment.
func blank(token string) bool {
	return strings.TrimSpace(token) == "" || strings.HasPrefix(token, "--") || strings.HasPrefix(token, "/*")
}

// nextWord returns the length of the token that a text begins with, and the name in lower case if it is one; −1 if the
// token has no end or could be read in two ways.
func nextWord(text string) (word string, quoted bool, n int) {
	switch {
	case strings.HasPrefix(text, "--"):
		if end := strings.IndexByte(text, '\n'); end >= 0 {
			return "", false, end + 1
		}
		return "", false, len(text)
	case strings.HasPrefix(text, "/*"):
		end := strings.Index(text, "*/")
		if end < 0 || strings.Contains(text[2:end], "/*") { // comments within comments end elsewhere
			return "", false, -1
		}
		return "", false, end + 2
	case text[0] == '\'' || text[0] == '"':
		end := closing(text, text[:1])
		if text[0] == '"' && end > 0 {
			word = strings.ToLower(strings.ReplaceAll(text[1:end-1], `""`, `"`))
		}
		return word, word != "", end
	}
	for n < len(text) {
		r, size := utf8.DecodeRuneInString(text[n:])
		if r != '_' && !unicode.IsLetter(r) && (n == 0 || !unicode.IsDigit(r)) {
			break
		}
		n += size
	}
	if n == 0 {
		if text[0] >= utf8.RuneSelf { // the engine takes some of these for white space
			return "", false, -1
		}
		return "", false, 1
	}
	if word = strings.ToLower(text[:n]); n < len(text) && text[n] == '\'' {
		return word, false, -1 // E'…' and its like have rules of their own for where they end
	}
	return word, false, n
}

// closing returns the length of a quoted text; −1 if it has no end. A doubled mark is part of the text.
func closing(text, mark string) int {
	for n := 1; ; {
		end := strings.Index(text[n:], mark)
		if end < 0 {
			return -1
		}
		if n += end + 1; !strings.HasPrefix(text[n:], mark) {
			return n
		}
		n++
	}
}
