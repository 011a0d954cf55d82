package reward

import (
	"regexp"
	"strings"
)

// substitutions are applied first, in order.
var substitutions = [][2]string{
	{"an ", ""}, {"a ", ""}, {".$", "$"}, {`\$`, ""}, {`\ `, ""}, {" ", ""},
	{"mbox", "text"}, {`,\text{and}`, ","}, {`\text{and}`, ","}, {`\text{m}`, `\text{}`},
}

// unitWords are deleted wherever they stand once the spaces are gone.
var unitWords = []string{
	"square", "ways", "integers", "dollars", "mph", "inches", "hours", "km", "units", `\ldots`,
	"sue", "points", "feet", "minutes", "digits", "cents", "degrees", "cm", "gm", "pounds",
	"meters", "meals", "edges", "students", "childrentickets", "multiples",
}

// dressing is TeX that carries no value.
var dressing = []string{
	`\text{s}`, `\text{.}`, "\\text{\ns}", `\text{}^2`, `\text{}^3`, "\\text{\n}", `\text{}`,
	`\mathrm{th}`, `^\circ`, `^{\circ}`, `\;`, `,\!`, "{,}", `"`, `\dots`,
}

var (
	inlineMath  = regexp.MustCompile(`(?s)\$(.*?)\$`)
	wrapped     = regexp.MustCompile(`(?s)\\(?:text|textbf|overline|boxed)\{(.*?)\}`)
	bareFrac    = regexp.MustCompile(`frac([^{}\s])([^{}\s])`)
	bareSqrt    = regexp.MustCompile(`sqrt([^{\[\s])`)
	digitGroups = regexp.MustCompile(`^[0-9,]*[0-9][0-9,]*$`)
)

// Normalize strips an answer to what is compared as a string.
func Normalize(answer string) string {
	if at := strings.LastIndex(answer, "="); at >= 0 {
		answer = answer[at+1:]
	}
	answer = strings.ReplaceAll(answer, "\u2212", "-") // the typographic minus sign
	for _, s := range substitutions {
		answer = strings.ReplaceAll(answer, s[0], s[1])
	}
	for _, word := range unitWords {
		answer = strings.ReplaceAll(answer, word, "")
	}
	for _, tex := range dressing {
		answer = strings.ReplaceAll(answer, tex, "")
	}
	if m := inlineMath.FindStringSubmatch(answer); m != nil {
		answer = m[1]
	}
	answer = wrapped.ReplaceAllString(answer, "$1")
	answer = bareFrac.ReplaceAllString(answer, "frac{$1}{$2}")
	answer = bareSqrt.ReplaceAllString(answer, "sqrt{$1}")
	answer = strings.ReplaceAll(answer, "$", "")
	if digitGroups.MatchString(answer) {
		answer = strings.ReplaceAll(answer, ",", "")
	}
	return strings.TrimSpace(answer)
}
