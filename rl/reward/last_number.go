package reward

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// The reward of an answer in plain words:
//
//	r = 1[the last number of the final answer equals the gold]
//
// Source: the usual grading of GSM8K answers that are not boxed (the last number of the text). Departures: only the
// final answer is read, so that numbers in reasoning do not count, and a gold that is no number must be the whole
// answer.

var lastNumber = Declaration{
	Choice: choice.Choice{
		Name: "last_number", Doc: "1 if the last number of the final answer equals the gold, else 0",
		Source:   "the usual grading of GSM8K",
		Settings: outcomeReward{},
	},
	FromText: true,
	Compare: func(t Trajectory, o Options) Outcome {
		out := Outcome{Verdict: NoAnswer}
		if !t.Answered {
			return out
		}
		answer := strings.TrimSpace(t.Answer)
		gold := minusSigns.Replace(strings.TrimSpace(t.Gold))
		if gold == numberIn(gold) && gold != "" {
			if answer = numberIn(answer); answer == "" {
				return out
			}
			answer, gold = decimalOf(answer), decimalOf(gold)
		}
		return Grade("<answer>"+strings.ReplaceAll(answer, ",", "")+"</answer>", gold, Options{Literal: o.Literal,
			Plain: true})
	},
}

// numberForm is a number without a sign: with thousands that a comma, a thin or a plain space separates, with an
// exponent, or a power, as 10^6 and 1.5 × 10^6.
var numberForm = regexp.MustCompile(`(?:\d{1,3}(?:(?:,|\\,| |\x{00a0}|\x{2009}|\x{202f})\d{3})+\b|\d+)(?:\.\d+)?` +
	numberTail + `|\.\d+` + numberTail)

const (
	numberPower = `\^(?:\{[-−]?\d+\}|[-−]?\d+)`
	numberTail  = `(?:[eE][-+]?\d+\b|` + numberPower + `|\s*(?:\\times|\\cdot|[×·*])\s*10` + numberPower + `)?`
)

// numberIn returns the last number of a text with its sign; "" without one. A sign between two operands is none.
func numberIn(text string) string {
	text = minusSigns.Replace(text)
	all := numberForm.FindAllStringIndex(text, -1)
	if len(all) == 0 {
		return ""
	}
	from, to := all[len(all)-1][0], all[len(all)-1][1]
	if from > 0 && text[from-1] == '-' && !operand(text[:from-1]) {
		from-- // the answer is -5, but not 3-5
	}
	return text[from:to]
}

// operand reports whether a text ends in what a minus sign after it subtracts from: letters only without a space.
func operand(text string) bool {
	before := strings.TrimRight(text, " ")
	if before == "" {
		return false
	}
	last := before[len(before)-1]
	if strings.IndexByte("0123456789)]}%", last) >= 0 {
		return true
	}
	return len(before) == len(text) && (isAlphanumeric(last) || last == '.')
}

var minusSigns = strings.NewReplacer("\u2212", "-", "\u2013", "-")

// numberParts are a number's digits, its exponent to ten, its own power, and a factor's power of ten.
var numberParts = regexp.MustCompile(`^(-?)([^eE^\\×·*\s]+)(?:[eE]([-+]?\d+)|\^\{?(-?\d+)\}?|.*10\^\{?(-?\d+)\}?)?$`)

// largestExponent bounds the digits that an exponent can ask for.
const largestExponent = 300

// decimalOf writes a number without exponents and powers, if these are small enough.
func decimalOf(number string) string {
	number = thousands.Replace(number)
	parts := numberParts.FindStringSubmatch(number)
	if parts == nil || parts[3]+parts[4]+parts[5] == "" {
		return number
	}
	digits, ok := new(big.Rat).SetString(parts[2])
	power, err := strconv.Atoi(parts[3] + parts[4] + parts[5])
	if !ok || err != nil || power > largestExponent || power < -largestExponent || digits.Sign() == 0 && power < 0 {
		return number
	}
	base, by := big.NewRat(10, 1), digits
	if parts[4] != "" {
		base, by = digits, big.NewRat(1, 1)
	}
	factor := new(big.Rat).SetInt64(1)
	for range max(power, -power) {
		factor.Mul(factor, base)
	}
	if power < 0 {
		factor.Inv(factor)
	}
	r := new(big.Rat).Mul(by, factor)
	if r.IsInt() {
		return parts[1] + r.Num().String()
	}
	return parts[1] + strings.TrimRight(r.FloatString(largestExponent), "0")
}

var thousands = strings.NewReplacer(",", "", `\,`, "", " ", "", "\u00a0", "", "\u2009", "", "\u202f", "")
