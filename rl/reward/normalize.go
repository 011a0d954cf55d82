package reward

import (
	"regexp"
	"strings"
)

// substitutions are applied first, in order.
var substitutions = [][2]string{
	{"an ", ""}, {"a ", ""}, {".$", "$"}, {`\$`, ""}, {`\ `, ""}, {" ", ""},
	{"mbox", "text"}, {`,\text{and}`, ","}, {`\text{and}`, ","}, {`\text{m}`, `\text{}`},
	{`,\!`, ","}, {"{,}", ","},
}

// unitWords are deleted wherever they occur, after the spaces were deleted.
var unitWords = []string{
	"square", "ways", "integers", "dollars", "mph", "inches", "hours", "km", "units",
	"sue", "points", "feet", "minutes", "digits", "cents", "degrees", "cm", "gm", "pounds", "meters", "meals", "edges",
	"students", "childrentickets", "multiples",
}

// dressing is TeX that carries no value.
var dressing = []string{
	`\text{s}`, `\text{.}`, "\\text{\ns}", `\text{}^2`, `\text{}^3`, "\\text{\n}", `\text{}`,
	`\mathrm{th}`, `^\circ`, `^{\circ}`, `\;`, `"`,
}

var (
	inlineMath = regexp.MustCompile(`(?s)\$(.*?)\$`)
	// over digits: a period
	wrapped     = regexp.MustCompile(`(?s)\\(?:text|textbf|boxed)\{(.*?)\}|\\overline\{([^0-9{}]*)\}`)
	bareFrac    = regexp.MustCompile(`frac([^{}\s])([^{}\s])`)
	bareSqrt    = regexp.MustCompile(`sqrt([^{\[\s])`)
	digitGroups = regexp.MustCompile(`^-?[1-9][0-9]{0,2}(?:,[0-9]{3})+$`)
	// between are digits that what is deleted separates; the second match's first digit may be the first's last.
	between = regexp.MustCompile(
		`([0-9.])((?:\s|\$|\\[ ;$]|an? |"|` + strings.Join(unitWords, "|") + `|\^\{?\\circ\}?|` +
			`\\(?:text|mbox)\{(?:and|or)?\}|\\mathrm\{th\}|\}?\\(?:text|textbf|mbox|boxed)\{|\})+)([0-9.])`,
	)
)

// kept replaces the text that separates digits until everything else is deleted.
const kept = "\ue000"

// separate puts a mark between two digits for what is there.
func separate(match string) string { return match[:1] + kept + match[len(match)-1:] }

// normalize reduces an answer to the string that is compared. An equation is reduced by its last side (see conclude),
// or by both sides where it is compared with both.
func normalize(answer string) string {
	answer = strings.ReplaceAll(answer, "\u2212", "-") // the typographic minus sign
	for range 2 {
		answer = between.ReplaceAllStringFunc(answer, separate)
	}
	for _, s := range substitutions {
		answer = strings.ReplaceAll(answer, s[0], s[1])
	}
	for _, word := range unitWords {
		answer = strings.ReplaceAll(answer, word, "")
	}
	for _, tex := range dressing {
		answer = strings.ReplaceAll(answer, tex, "")
	}
	if m := inlineMath.FindStringSubmatch(answer); m != nil { // unless there are other numbers around it
		if !strings.ContainsAny(strings.Replace(answer, m[0], "", 1), "0123456789$") {
			answer = m[1]
		}
	}
	answer = wrapped.ReplaceAllString(answer, "$1$2")
	answer = bareFrac.ReplaceAllString(answer, "frac{$1}{$2}")
	answer = bareSqrt.ReplaceAllString(answer, "sqrt{$1}")
	answer = strings.ReplaceAll(answer, "$", "")
	if digitGroups.MatchString(answer) {
		answer = strings.ReplaceAll(answer, ",", "")
	}
	return strings.TrimSpace(strings.ReplaceAll(answer, kept, " "))
}
