package reward

import (
	"regexp"
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
		Settings: lastNumberReward{},
	},
	FromText: true,
	Compare: func(t Trajectory, o Options) Outcome {
		out := Outcome{Verdict: NoAnswer}
		if !t.Answered {
			return out
		}
		answer := strings.TrimSpace(t.Answer)
		if numberForm.FindString(strings.TrimSpace(t.Gold)) == strings.TrimSpace(t.Gold) {
			all := numberForm.FindAllString(strings.ReplaceAll(answer, "\u2212", "-"), -1)
			if len(all) == 0 {
				return out
			}
			answer = all[len(all)-1]
		}
		return Grade("<answer>"+strings.ReplaceAll(answer, ",", "")+"</answer>", t.Gold, Options{Literal: o.Literal,
			Plain: true})
	},
}

// numberForm is a number, which thousands may separate.
var numberForm = regexp.MustCompile(`-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?`)

// lastNumberReward is the outcome.
type lastNumberReward struct{}

// Score is the outcome's reward.
func (lastNumberReward) Score(_ Trajectory, o Outcome) (float64, error) { return o.Reward, nil }
