package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/schema"
)

// ForkInput starts a run that shares the first steps of another one. It is the only argument of ForkRun, as the UI's
// form takes it.
type ForkInput struct {
	// Run names the new run; empty: the workflow's id.
	Run string `json:"run_id,omitempty"`
	// Of names the other run, and Step the last step that the runs share.
	Of   string `json:"of"`
	Step int    `json:"step"`
	// From is a stage of the step after that: reward, resample or advantage. The new run then shares what the other
	// one has committed of that step before the stage, such as its rollout.
	From string `json:"from,omitempty"`
	// Set changes fields of the recipe that the step was taken under: path=value.
	Set []string `json:"set,omitempty"`

	invalid string
}

// UnmarshalJSON refuses unknown fields; see TrainRunInput.
func (in *ForkInput) UnmarshalJSON(data []byte) error {
	type plain ForkInput
	return strictJSON(data, (*plain)(in), &in.invalid)
}

// ForkRun continues as the TrainRun of the fork, so that everything that follows runs follows forks.
func ForkRun(ctx workflow.Context, in ForkInput) (TrainRunResult, error) {
	train := TrainRunInput{Run: in.Run, Set: in.Set, Fork: &schema.ForkPoint{Run: in.Of, Step: in.Step},
		ForkFrom: in.From, invalid: in.invalid}
	if err := train.validate(); err != nil {
		return TrainRunResult{}, refuse(ctx, err)
	}
	return TrainRunResult{}, workflow.NewContinueAsNewError(ctx, TrainRun, train)
}
