package reward

import (
	"errors"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// The reward of imported trajectories is the number that the source gave. It does not read the text.

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
