package reward

import (
	"regexp"
	"strings"
)

// Text around a number that does not change its value: spacing, sizes of brackets, currency, units. Removing it never
// joins digits that it separates: 3\,0, 3$0 and 3°0 are not 30.

const unitForms = `square|ways|integers|dollars?|mph|inches|hours?|km|units?|points?|feet|` +
	`minutes?|digits|cents?|degrees?|cm|gm|pounds?|meters?|meals|edges|students|multiples`

// plainText removes dressing that does not change a number's value.
var plainText = strings.NewReplacer(
	"\u2212", "-", `\left`, "", `\right`, "", `\!`, "", `\,`, "", `\;`, "", `\:`, "", "{,}", ",",
	`\$`, "", "$", "", "€", "", "£", "", `\%`, "%", `\dfrac`, `\frac`, `\tfrac`, `\frac`,
	`^{\circ}`, "", `^\circ`, "", "°", "", `\ `, " ", "~", " ",
)

var (
	wrappedWord = regexp.MustCompile(`\\(?:text|textbf|mathrm|mbox)\{([^{}]*)\}`)
	unitTail    = regexp.MustCompile(`(?i)\s*\b(?:` + unitForms + `)$`)
	unitInside  = regexp.MustCompile(`(?i)(?:^|[^A-Za-z\\])(` + unitForms + `)(?:$|[^A-Za-z])`)
	percentTail = regexp.MustCompile(`(?i)\s*\bpercent$`)
	// glued are digits that only dressing separates, thinGroups thousands that a thin space does.
	glued      = regexp.MustCompile(`([0-9.])((?:\\left|\\right|\\[!,;:$]|[$€£°]|\^\{?\\circ\}?)+[0-9.])`)
	thinGroups = regexp.MustCompile(`(^|[^0-9.,])([1-9][0-9]{0,2}(?:\\,[0-9]{3})+)($|[^0-9])`)
	// rootTimes is a product that multiplies a root; any other needs to be worked out.
	rootTimes = regexp.MustCompile(`\\cdot\s*\\sqrt`)
)

// plainNotation returns a text in plain notation. Dressing between digits becomes a character that no reader accepts.
func plainNotation(text string) string {
	text = thinGroups.ReplaceAllStringFunc(text, func(s string) string { return strings.ReplaceAll(s, `\,`, "") })
	text = rootTimes.ReplaceAllString(glued.ReplaceAllString(text, "$1#$2"), `\sqrt`)
	return plainText.Replace(text)
}

// bareNumber removes a number's units, currency and full stop. It returns false if the number is marked as
// approximate or ends in an ellipsis.
func bareNumber(text string) (number, unit string, ok bool) {
	currency := currencyOf(text)
	text = strings.TrimSpace(wrappedWord.ReplaceAllString(text, " $1"))
	if strings.HasPrefix(text, "~") { // about
		return "", "", false
	}
	degrees := strings.Contains(text, `\circ`) || strings.Contains(text, "°")
	text = strings.TrimSpace(plainNotation(text))
	text = strings.TrimRight(text, `"`)
	if text = strings.TrimSuffix(text, "."); strings.HasSuffix(text, ".") { // an ellipsis: more would follow
		return "", "", false
	}
	text = percentTail.ReplaceAllString(strings.TrimRight(text, `" `), "%")
	for at := unitTail.FindStringIndex(text); at != nil; at = unitTail.FindStringIndex(text) {
		unit = strings.TrimSpace(unitOf(text[at[0]:]) + " " + unit)
		text = strings.TrimSpace(text[:at[0]])
	}
	switch {
	case unit == "" && degrees:
		unit = "degree"
	case unit == "":
		unit = currency
	}
	return text, unit, true
}

// unitOf is a unit in its singular; "" for words that any number may have.
func unitOf(word string) string {
	word = strings.ToLower(strings.TrimSpace(word))
	switch word {
	case "inches", "ways":
		return word
	case "unit", "units", "integers", "digits":
		return ""
	}
	return strings.TrimSuffix(word, "s")
}

// writtenUnits are the units in an expression, in order, in their singular.
func writtenUnits(text string) string {
	var all []string
	for _, m := range unitInside.FindAllStringSubmatch(wrappedWord.ReplaceAllString(text, " $1 "), -1) {
		if unit := unitOf(m[1]); unit != "" {
			all = append(all, unit)
		}
	}
	return strings.Join(all, " ")
}

// currencyOf is the currency that a sign names. A pair of dollar signs is TeX's.
func currencyOf(text string) string {
	plain := strings.ReplaceAll(text, `\$`, "")
	switch {
	case strings.Contains(text, "€"):
		return "euro"
	case strings.Contains(text, "£"):
		return "pound"
	case len(plain) < len(text) || strings.Count(plain, "$")%2 == 1:
		return "dollar"
	}
	return ""
}
