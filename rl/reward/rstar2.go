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
// the whole response, inside or outside an answer block (WholeText), and accepts an answer that either of two graders
// accepts. Here one grader compares strings, exact values and lists (see Compare). A rollout that was cut off has no
// answer, so its reward is 0.

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
	if o.Plain && answered && !boxed {
		answer, boxed = strings.TrimSpace(block), true
	}
	switch {
	case boxed:
		v := Compare(answer, gold, o)
		return Outcome{Reward: v.Score(), Verdict: v, Answer: answer}
	case answered:
		return Outcome{Verdict: NoBox}
	}
	return Outcome{Verdict: NoAnswer}
}

// GradeLastBox grades the last box of the whole text, as rStar2's release and tool-integrated
// maths in ARLArena do; a text without a whole box has the verdict NoBox.
func GradeLastBox(text, gold string, o Options) Outcome {
	answer, boxed := boxedLike(text, gold)
	if !boxed {
		return Outcome{Verdict: NoBox}
	}
	v := Compare(answer, gold, o)
	return Outcome{Reward: v.Score(), Verdict: v, Answer: answer}
}

// RStar2 is the outcome reward as one choice of a method.
type RStar2 struct {
	Options
	WholeText bool // the release's reading: the last box, wherever it is
}

// Validate refuses nothing: every combination has a meaning, though WholeText makes Fallback idle.
func (RStar2) Validate() error { return nil }

// Reward grades a trajectory's text.
func (r RStar2) Reward(text, gold string) Outcome {
	if r.WholeText {
		return GradeLastBox(text, gold, r.Options)
	}
	return Grade(text, gold, r.Options)
}
