package reward

import (
	"regexp"
	"slices"
	"strings"
)

// Compare compares an answer with the gold: by value if both are numbers, by elements if either is a list, otherwise
// as normalised strings. An empty answer is wrong.
func Compare(answer, gold string, o Options) Verdict {
	if answer = strings.TrimSpace(answer); answer == strings.TrimSpace(gold) && answer != "" {
		return Exact
	}
	answer, gold, comparable := comparedParts(answer, gold)
	same := normalize(answer) == normalize(gold) && normalize(gold) != "" && !otherUnits(answer, gold)
	if !comparable {
		return verdictOf(same, Exact)
	}
	a, answerValued := parseValue(answer)
	g, goldValued := parseValue(gold)
	if o.Literal && goldValued && g.literal && !(answerValued && a.literal) {
		return Wrong
	}
	if answerValued && goldValued {
		return agreement(compareValues(a, g), same)
	}
	if v, lists := compareLists(answer, gold, o); lists {
		return agreement(v, same)
	}
	return verdictOf(same, Exact)
}

// otherUnits reports whether both texts have units, and different ones: normalising deletes all.
func otherUnits(answer, gold string) bool {
	a, g := writtenUnits(answer), writtenUnits(gold)
	return a != "" && g != "" && a != g
}

// agreement is a verdict of agreement, or Exact where the strings agree as well.
func agreement(v Verdict, same bool) Verdict {
	if v.Correct() && same {
		return Exact
	}
	return v
}

// compareElements compares two elements of lists. There a name says which element it is.
func compareElements(answer, gold string, o Options) bool {
	a, g := readEquation(answer), readEquation(gold)
	if a.form != bare && g.form != bare && a.name != g.name {
		return false
	}
	return Compare(answer, gold, o).Correct()
}

// list is a comma list: ordered and bracketed like a tuple or interval, or unordered.
type list struct {
	elements []string
	brackets string // "()" "[)" …; "" for sets and bare lists, whose order is free
}

// compareLists compares element by element; lists is false when neither side is a list.
func compareLists(answer, gold string, o Options) (v Verdict, lists bool) {
	if len(answer) > maxValueBytes || len(gold) > maxValueBytes {
		return Wrong, false
	}
	a, g := readList(answer, false), readList(gold, false)
	switch {
	case len(a.elements) < 2 && len(g.elements) < 2:
		return Wrong, false
	case len(a.elements) < 2: // digits that look grouped may be a list like the other side
		a = readList(answer, true)
	case len(g.elements) < 2:
		g = readList(gold, true)
	}
	if len(a.elements) != len(g.elements) || a.brackets != g.brackets {
		return Wrong, true
	}
	same := func(answer, gold string) bool { return compareElements(answer, gold, o) }
	if a.brackets != "" {
		return verdictOf(slices.EqualFunc(a.elements, g.elements, same), Tuple), true
	}
	return verdictOf(unordered(a.elements, g.elements, same), Set), true
}

// verdictOf is v if two sides are equal, else Wrong.
func verdictOf(equal bool, v Verdict) Verdict {
	if equal {
		return v
	}
	return Wrong
}

// unordered pairs off equal elements, each once.
func unordered(a, g []string, same func(answer, gold string) bool) bool {
	left := slices.Clone(a)
	for _, want := range g {
		i := slices.IndexFunc(left, func(got string) bool { return same(got, want) })
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return true
}

var conjunction = regexp.MustCompile(`,?\s*(?:\\text\{\s*(?:and|or)\s*\}|\b(?:and|or)\b)\s*`)

// readList reads a set, tuple, interval or bare list. naive splits at every comma of a bare list,
// even where it may group digits.
func readList(text string, naive bool) list {
	text = strings.TrimSpace(plainNotation(text))
	for _, pair := range []struct{ opening, closing, brackets string }{
		{`\{`, `\}`, ""}, {"{", "}", ""}, {"(", ")", "()"}, {"(", "]", "(]"}, {"[", ")", "[)"}, {"[", "]", "[]"},
	} {
		if inner, ok := enclosed(text, pair.opening, pair.closing); ok {
			return list{elements: splitList(inner, true), brackets: pair.brackets}
		}
	}
	return list{elements: splitList(conjunction.ReplaceAllString(text, ","), naive)}
}

// enclosed returns the text between the first and the last character if they are matching brackets.
func enclosed(text, opening, closing string) (string, bool) {
	inner, ok := strings.CutPrefix(text, opening)
	if !ok {
		return "", false
	}
	if inner, ok = strings.CutSuffix(inner, closing); !ok {
		return "", false
	}
	depth := 0
	for i := range len(inner) {
		if depth += nesting(inner[i]); depth < 0 {
			return "", false
		}
	}
	return inner, depth == 0
}

// nesting is +1 for an opening bracket and −1 for a closing one.
func nesting(c byte) int {
	switch c {
	case '(', '[', '{':
		return 1
	case ')', ']', '}':
		return -1
	}
	return 0
}

// splitList cuts at the commas outside brackets. Unless naive, a comma between a digit and exactly
// three digits groups them and does not cut.
func splitList(text string, naive bool) []string {
	var out []string
	depth, from := 0, 0
	for i := range len(text) {
		depth += nesting(text[i])
		if text[i] != ',' || depth != 0 || !naive && groups(text, i) {
			continue
		}
		out = append(out, strings.TrimSpace(text[from:i]))
		from = i + 1
	}
	return append(out, strings.TrimSpace(text[from:]))
}

// groups reports whether the comma at i groups digits by thousands.
func groups(text string, i int) bool {
	digit := func(k int) bool { return k >= 0 && k < len(text) && text[k] >= '0' && text[k] <= '9' }
	return digit(i-1) && digit(i+1) && digit(i+2) && digit(i+3) && !digit(i+4)
}
