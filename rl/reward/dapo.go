package reward

import (
	"regexp"

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
	Compare: func(t Trajectory, _ Options) Outcome {
		out := strictBox(t.Text, t.Gold)
		out.Reward = 2*out.Verdict.Score() - 1
		return out
	},
}

const (
	strictWindow   = 300
	strictTail     = 100
	invalidMinerva = "[INVALID]"
)

// answerLine is "Answer:" and the rest of the first line behind it that is not empty.
var answerLine = regexp.MustCompile(`(?i)answer[\s\pZ\x0b\x1c-\x1f\x{85}]*:[\s\pZ\x0b\x1c-\x1f\x{85}]*([^\n]+)`)

// DAPOForm names a way to find and compare the answer.
type DAPOForm string

// The forms.
const (
	DAPOStrict  DAPOForm = "dapo_strict"
	DAPOMinerva DAPOForm = "dapo_minerva"
)

// DAPO is the verification as one choice of a method. The zero value is the strict form.
type DAPO struct {
	Form DAPOForm `enum:"dapo_strict|dapo_minerva"` // "" means dapo_strict
}

// Validate names a field out of range.
func (d DAPO) Validate() error { return choice.Check("DAPO reward: ", d) }

// Reward scores a response: Reward is +1 or −1; the verdict is Exact, Wrong or, where no answer
// could be found, NoBox and NoAnswer.
func (d DAPO) Reward(text, gold string) (Outcome, error) {
	if err := d.Validate(); err != nil {
		return Outcome{}, err
	}
	out := strictBox(text, gold)
	if d.Form == DAPOMinerva {
		out = minerva(text, gold)
	}
	out.Reward = 2*out.Verdict.Score() - 1
	return out, nil
}

// strictBox compares the last box of the text's end as a string.
func strictBox(text, gold string) Outcome {
	answer, ok := LastBoxed(lastCharacters(lastCharacters(text, strictWindow), strictTail))
	switch {
	case !ok:
		return Outcome{Verdict: NoBox}
	case answer == gold:
		return Outcome{Verdict: Exact, Answer: answer}
	}
	return Outcome{Verdict: Wrong, Answer: answer}
}

// minerva compares the last answer line, normalised. A gold that normalises to nothing agrees with no answer.
func minerva(text, gold string) Outcome {
	lines := answerLine.FindAllStringSubmatchIndex(text, -1)
	if lines == nil {
		return Outcome{Verdict: NoAnswer, Answer: invalidMinerva}
	}
	last := lines[len(lines)-1]
	answer, want, _ := comparedParts(text[last[2]:last[3]], gold)
	answer, want = normalize(answer), normalize(want)
	if answer == want && want != "" {
		return Outcome{Verdict: Exact, Answer: answer}
	}
	return Outcome{Verdict: Wrong, Answer: answer}
}

// lastCharacters cuts a text to its last n characters.
func lastCharacters(text string, n int) string {
	at := len(text)
	for range n {
		if at == 0 {
			break
		}
		at--
		for at > 0 && text[at]&0xc0 == 0x80 { // inside a character of several bytes
			at--
		}
	}
	return text[at:]
}
