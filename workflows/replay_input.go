package workflows

import (
	"slices"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// ReplayStageInput asks to run stages of a step again from what the step has committed. It is the only argument of
// ReplayStage, as the UI's form takes it. With Check, the workflow recomputes the pure stages of all finished
// steps in memory, compares them, and commits nothing.
type ReplayStageInput struct {
	Run string `json:"run_id"`
	// Step is a training step, from 1 on.
	Step int `json:"step,omitempty"`
	// From and Through are the first and the last stage: reward, resample, advantage, buffer if the step has a replay
	// buffer, or update. An empty Through means the last of these stages that the step has, without the update.
	From    string `json:"from,omitempty"`
	Through string `json:"through,omitempty"`
	// Set changes recipe fields that the replayed stages read: path=value.
	Set   []string `json:"set,omitempty"`
	Check bool     `json:"check,omitempty"`
	// NoEvaluation leaves out the held-out problems after an update.
	NoEvaluation bool `json:"no_evaluation,omitempty"`

	// Continued carries a check over a continue-as-new; no one else sets it.
	Continued *CheckState `json:"continued,omitempty"`

	invalid string // why the JSON was refused
}

// UnmarshalJSON refuses unknown fields; see TrainRunInput.
func (in *ReplayStageInput) UnmarshalJSON(data []byte) error {
	type plain ReplayStageInput
	return strictJSON(data, (*plain)(in), &in.invalid)
}

// validate returns the stages to replay; none for a check.
func (in ReplayStageInput) validate() ([]string, error) {
	switch {
	case in.invalid != "":
		return nil, badInput("%s", in.invalid)
	case in.Run == "":
		return nil, badInput("run_id: name the run whose stages are replayed")
	case in.Check && (in.Step != 0 || in.From != "" || in.Through != "" || len(in.Set) > 0 || in.NoEvaluation):
		return nil,
			badInput("check: makes all pure stages of all steps again as they were; step, from, through, set and " +
				"no_evaluation must be left out")
	case !in.Check && in.Step < 1:
		return nil, badInput("step: must be ≥ 1, got %d", in.Step)
	}
	if err := checkRun(in.Run); err != nil || in.Check {
		return nil, err
	}
	stages, err := api.Replayed(in.From, in.Through)
	if err != nil {
		return nil, badInput("%s", err)
	}
	if in.NoEvaluation && !slices.Contains(stages, schema.StageUpdate) {
		return nil, badInput("no_evaluation: only a replay through update evaluates")
	}
	return stages, nil
}
