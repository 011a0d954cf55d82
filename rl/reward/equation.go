package reward

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An answer may be written as an equation that ends in it: x = 30, 12 + 18 = 30, A = 5 · 6 = 30. The last side is taken
// only from such an equation. Other texts with an equals sign (x -= 30, x == 30, x <= 30, x = 29 or x = 30, 29 = 30)
// say something else, and the text after their last sign is not an answer.

// form says what the first side of an equation is.
type form uint8

const (
	bare       form = iota // no equation: the text itself is the answer, or no answer at all
	named                  // x = 30, f(x) = 30, Total cost = 30
	worked                 // 12 + 18 = 30: numbers alone
	expression             // a + b = 30: a statement about letters
)

// conclusion is an answer read as an equation. Where the form is bare, last is the whole text.
type conclusion struct {
	last string // the last side
	name string // the first side without its dressing
	form form
}

// readEquation reads an equation. If its first side names the answer or works it out, the last side is the answer. Any
// other text is kept whole.
func readEquation(text string) conclusion {
	whole := conclusion{last: text}
	sides, ok := cutSides(text)
	if !ok || len(sides) < 2 {
		return whole
	}
	last := strings.TrimSpace(sides[len(sides)-1])
	if last == "" || last == "$" {
		return whole
	}
	for _, side := range sides[:len(sides)-1] {
		if !plausible(side) || contradicts(side, last) {
			return whole
		}
	}
	for _, side := range sides[1 : len(sides)-1] { // x = 29 x = 30 are two equations
		if apart.MatchString(side) {
			return whole
		}
	}
	if strings.HasPrefix(strings.TrimSpace(text), "$") && strings.Count(text, "$")%2 == 0 {
		last = "$" + last // the partner of the one that ends it
	}
	first := strings.Trim(sides[0], " $")
	return conclusion{last: last, name: nameDressing.Replace(first), form: formOf(first)}
}

// cutSides cuts a text at the equals signs outside brackets; false where one is part of another operator.
func cutSides(text string) (sides []string, ok bool) {
	depth, from := 0, 0
	for i := range len(text) {
		depth += nesting(text[i])
		if text[i] != '=' || depth != 0 {
			continue
		}
		if !equals(text, i) {
			return nil, false
		}
		sides = append(sides, text[from:i])
		from = i + 1
	}
	return append(sides, text[from:]), true
}

// equals reports whether the sign at i says that its sides are equal: an operand ends before it, and neither
// neighbour makes another operator of it (!= %= |= == => =~).
func equals(text string, i int) bool {
	if i+1 < len(text) && strings.IndexByte("=><~!?:", text[i+1]) >= 0 {
		return false
	}
	before := strings.TrimRight(text[:i], " ")
	if before == "" {
		return false
	}
	switch last := before[len(before)-1]; {
	case len(before) < i && last == '!': // n! = 30
		return true
	case last == '%':
		return len(before) < i || strings.HasSuffix(before, `\%`)
	case last == '|':
		return strings.Count(before, "|")%2 == 0
	case last < utf8.RuneSelf:
		return strings.IndexByte(")]}'$.", last) >= 0 || isAlphanumeric(last)
	}
	r, _ := utf8.DecodeLastRuneInString(before)
	return unicode.IsLetter(r) || strings.ContainsRune("°²³′", r)
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

var (
	// foreign matches text that no side of an equation has: separators, other relations, operators of programs, and
	// words that join several statements or negate one.
	foreign = regexp.MustCompile(`[;:<>≤≥≠≈≡→⇒"#@&?~\n]|\\\\|` +
		`\\(?:not|neq?|leq?|geq?|lt|gt|approx|sim|equiv|in|to|iff|implies|[Rr]ightarrow|Leftrightarrow|` +
		`q?quad|lor|land|vee|wedge|cup)(?:[^A-Za-z]|$)|` +
		`(?i)\b(?:and|or|not|never|if|unless|then|else)\b|n't\b|n’t\b`)
	// apart are two operands without an operator, of which the second is no unit: 29 x.
	apart = regexp.MustCompile(`[0-9)}]\s+[A-Za-z](?:[^A-Za-z]|$)`)
	// neutral are commands and units that a sum of numbers may hold.
	neutral = regexp.MustCompile(`\\(?:d?frac|tfrac|sqrt|cdot|times|div|left|right|circ|pi|` +
		`[a-z]*text[a-z]*\{[^{}]*\}|mathrm\{[^{}]*\}|mbox\{[^{}]*\})`)
	// operators make an expression of a side.
	operators = regexp.MustCompile(`[-+*/^×÷·−]|\\(?:cdot|times|div|d?frac|tfrac|sqrt|pm|binom)`)
)

// nameDressing is what makes no other name of one: A, $A$ and \text{A}.
var nameDressing = strings.NewReplacer(" ", "", "$", "", "{", "", "}", "", `\text`, "", `\mathrm`, "", `\`, "")

// plausible reports whether a text may be a side of an equation. A comma outside brackets cuts it in two, and
// so does a single bar.
func plausible(side string) bool {
	return strings.TrimSpace(side) != "" && !foreign.MatchString(side) && len(splitList(side, false)) == 1 &&
		strings.Count(outsideBrackets(side), "|")%2 == 0
}

// contradicts reports whether both sides are plain numbers, and different ones.
func contradicts(side, last string) bool {
	a, aRead := parseValue(side)
	b, bRead := parseValue(last)
	return aRead && bRead && a.literal && b.literal && !compareValues(a, b).Correct()
}

// formOf says what a first side is.
func formOf(side string) form {
	if !strings.ContainsFunc(neutral.ReplaceAllString(unitTail.ReplaceAllString(side, ""), ""), unicode.IsLetter) {
		return worked
	}
	text := strings.TrimSpace(outsideBrackets(side))
	if operators.MatchString(text) || text != "" && text[0] >= '0' && text[0] <= '9' {
		return expression
	}
	return named
}

// outsideBrackets is the text outside all brackets.
func outsideBrackets(text string) string {
	depth, outside := 0, strings.Builder{}
	for i := range len(text) {
		if depth += nesting(text[i]); depth == 0 {
			outside.WriteByte(text[i])
		}
	}
	return outside.String()
}

// comparedParts returns the parts of an answer and its gold that are compared: the last sides, or both whole texts if
// the gold is a statement about letters, since agreement with its last side alone means nothing.
func comparedParts(answer, gold string) (a, g string, comparable bool) {
	toGold := readEquation(gold)
	if toGold.form == expression {
		return answer, gold, false
	}
	return readEquation(answer).last, toGold.last, true
}
