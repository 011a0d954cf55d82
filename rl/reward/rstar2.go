package reward

import (
	"strings"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// rStar2-Agent's outcome reward:
//
//	r = 1[the answer in \boxed{} inside <answer> matches the gold]
//
// Source: rStar2-Agent §2.2 (the answer-only reward). Departures: none by default. The release grades the last box of
// the whole response, inside or outside an answer block (GradeLastBox), and accepts an answer that either of two
// graders accepts. Here one grader compares strings, exact values and lists (see Compare). A rollout that was cut off
// has no answer, so its reward is 0.

var rstar2Outcome = Declaration{
	Choice: choice.Choice{
		Name: "rstar2_outcome", Doc: "1 if the box inside <answer> equals the gold answer, else 0",
		Source:   "rStar2 §2.2",
		Settings: outcomeReward{}, Reads: choice.Reading("fallback", "overlong", "symbolic"),
	},
}

// Options says how strictly to grade.
type Options struct {
	// Fallback grades the whole text where it has no answer block, or one without a box.
	Fallback bool
	// Literal asks for a written number where the gold is one: integers, decimals and percentages
	// pass, while 12/3 or \sqrt{16} for 4 leave the work undone and are wrong.
	Literal bool
	// Plain takes the text of an answer block without a box as the answer.
	Plain bool
}

// Grade gives rStar2's outcome reward of a trajectory's text: the last box inside the last answer
// block, against the gold.
func Grade(text, gold string, o Options) Outcome {
	block, answered := LastAnswer(text)
	answer, boxed := boxedLike(block, gold)
	if o.Fallback && !boxed {
		answer, boxed = boxedLike(text, gold)
	}
	switch {
	case boxed:
	case answered && o.Plain:
		answer = strings.TrimSpace(block)
	case answered:
		return Outcome{Verdict: NoBox}
	default:
		return Outcome{Verdict: NoAnswer}
	}
	return Compare(answer, gold, o).outcome(answer)
}

// GradeLastBox grades the last box of the whole text, as rStar2's release and tool-integrated
// maths in ARLArena do; a text without a whole box has the verdict NoBox.
func GradeLastBox(text, gold string, o Options) Outcome {
	answer, boxed := boxedLike(text, gold)
	if !boxed {
		return Outcome{Verdict: NoBox}
	}
	return Compare(answer, gold, o).outcome(answer)
}
