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
		Settings: callsReward{},
	},
	FromText: true,
	Compare: func(t Trajectory, _ Options) Outcome {
		out := Outcome{Verdict: NoAnswer, Answer: t.Answer}
		if valid, right := words.Calls(t.Answer, t.Gold); t.Answered && valid {
			out.Verdict = exactly(right)
		}
		out.Reward = out.Verdict.Score()
		return out
	},
}

// callsReward is the outcome.
type callsReward struct{}

// Score is the outcome's reward.
func (callsReward) Score(_ Trajectory, o Outcome) (float64, error) { return o.Reward, nil }
