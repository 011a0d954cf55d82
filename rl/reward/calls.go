package reward

import (
	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/words"
)

// The reward of calls that are the answer:
//
//	r = 1[the response calls the functions that the gold names, with arguments that it accepts]
//
// Package rl/words compares them, in any order; a response without a call is right where the gold is an empty list.

var calls = Declaration{
	Choice: choice.Choice{
		Name: "calls", Doc: "1 if the response makes the right calls of the task's functions and no other, else 0",
		Source:   "the Berkeley Function-Calling Leaderboard (Patil et al. 2025)",
		Settings: outcomeReward{},
	},
	FromText: true,
	Compare: func(t Trajectory, _ Options) Outcome {
		if valid, right := words.Calls(t.Answer, t.Gold); t.Answered && valid {
			return verdictOf(right, Exact).outcome(t.Answer)
		}
		return NoAnswer.outcome(t.Answer)
	},
}
