package reward

import (
	"errors"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// The rewards of imported trajectories: a comparison of the answer that the importer extracted, or the number that the
// source gave. Neither reads the text.

var mathAnswer = Declaration{
	Choice: choice.Choice{
		Name: "math_answer", Doc: "the same comparison on an imported solution's final answer", Source: "rStar2 §2.2",
		Settings: outcomeReward{}, Reads: choice.Reading("symbolic"),
	},
	AnyForm: true,
	Compare: func(t Trajectory, o Options) Outcome {
		if !t.Answered {
			return Outcome{Verdict: NoAnswer}
		}
		v := Compare(t.Answer, t.Gold, o)
		return Outcome{Reward: v.Score(), Verdict: v, Answer: t.Answer}
	},
}

var referenceReward = Declaration{
	Choice: choice.Choice{
		Name: "reference", Doc: "the number that an imported conversation's source gave it", Source: "the source",
		Settings: sourceReward{},
	},
	FromSource: true,
	Compare: func(t Trajectory, _ Options) Outcome {
		out := Outcome{Verdict: ReferenceFailure, Answer: t.Answer}
		if t.SourceReward != nil {
			out.Reward = *t.SourceReward
		}
		if t.SourceSuccess != nil && *t.SourceSuccess {
			out.Verdict = ReferenceSuccess
		}
		return out
	},
}

// sourceReward is the number that the source of a trajectory gave it.
type sourceReward struct{}

// Score is that number. A trajectory without one is an error.
func (sourceReward) Score(t Trajectory, _ Outcome) (float64, error) {
	if t.SourceReward == nil || t.SourceSuccess == nil {
		return 0, errors.New("the trajectory has no reward of its source")
	}
	return *t.SourceReward, nil
}
