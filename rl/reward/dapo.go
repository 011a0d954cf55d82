package reward

import (
	"regexp"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// DAPO's verification of mathematical answers, +1 or −1.
//
//	strict   the last box within the last 100 of the last 300 characters equals the gold, as strings
//	minerva  the line after the last "Answer:" equals the gold, both normalised (see normalize)
//
// Source: DAPO's release, which SPEAR's maths uses in its strict form; the normalisation is
// Minerva's. Departures: the typographic minus sign counts as a minus sign. A missing answer line is reported as
// [INVALID] and agrees with no gold. The release takes the text after the last equals sign, whatever that belongs to,
// and joins digits after deleting the text between them; for both see conclude and normalize.

var dapoStrict = Declaration{
	Choice: choice.Choice{
		Name: "dapo_strict", Doc: "±1: the box in the last characters equals the gold text",
		Source:   "DAPO (Yu et al. 2025); SPEAR's released code",
		Settings: outcomeReward{}, Reads: choice.Reading("overlong"),
	},
	Compare: func(t Trajectory, _ Options) Outcome { return DAPOStrict(t.Text, t.Gold) },
}

const (
	strictWindow   = 300
	strictTail     = 100
	invalidMinerva = "[INVALID]"
)

// answerLine is "Answer:" and the rest of the first line behind it that is not empty.
var answerLine = regexp.MustCompile(`(?i)answer[\s\pZ\x0b\x1c-\x1f\x{85}]*:[\s\pZ\x0b\x1c-\x1f\x{85}]*([^\n]+)`)

// DAPOStrict compares the last box of the text's end as a string.
func DAPOStrict(text, gold string) Outcome {
	answer, ok := LastBoxed(lastCharacters(lastCharacters(text, strictWindow), strictTail))
	if !ok {
		return plusOrMinus(NoBox, "")
	}
	return plusOrMinus(verdictOf(answer == gold, Exact), answer)
}

// DAPOMinerva compares the last answer line, normalised. A gold that normalises to nothing agrees with no answer.
func DAPOMinerva(text, gold string) Outcome {
	lines := answerLine.FindAllStringSubmatch(text, -1)
	if lines == nil {
		return plusOrMinus(NoAnswer, invalidMinerva)
	}
	answer, want, _ := comparedParts(lines[len(lines)-1][1], gold)
	answer, want = normalize(answer), normalize(want)
	return plusOrMinus(verdictOf(answer == want && want != "", Exact), answer)
}

// plusOrMinus is a verdict on an answer, worth +1 or −1.
func plusOrMinus(v Verdict, answer string) Outcome {
	return Outcome{Reward: plusMinus(v.Correct()), Verdict: v, Answer: answer}
}

// lastCharacters cuts a text to its last n characters.
func lastCharacters(text string, n int) string {
	at := len(text)
	for ; n > 0 && at > 0; n-- {
		at--
		for at > 0 && !utf8.RuneStart(text[at]) { // inside a character of several bytes
			at--
		}
	}
	return text[at:]
}
