package reward

import (
	"strings"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// The reward of a program:
//
//	r = 1[the program passes all tests of its task]
//
// Source: HumanEval (Chen et al. 2021) counts a sample as correct if it passes all unit tests. Departures: none. The
// tests run outside this package; their committed verdict settles the outcome (see Ask and Outcome.Settled). A program
// that a limit ended has not passed.

var unitTests = Declaration{
	Choice: choice.Choice{
		Name: "unit_tests", Doc: "1 if the program passes all tests of its task, else 0",
		Source:   "HumanEval (Chen et al. 2021)",
		Settings: outcomeReward{}, Reads: choice.Reading("overlong"),
	},
	Compare: func(t Trajectory, _ Options) Outcome {
		if !t.Answered || strings.TrimSpace(t.Answer) == "" {
			return Outcome{Verdict: NoAnswer}
		}
		return Outcome{Verdict: Failed, Answer: t.Answer}
	},
	Tested: true,
}
