package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// SampledStep is what SampleStep hands on to TrainStep: the manifests of the step's rollout and what it measured.
type SampledStep struct {
	step.Sampled
	// Timings are the measured times that the step records, Early those before it; Recorded are those that its shards
	// have recorded.
	Timings  []api.Timing `json:"timings,omitempty"`
	Early    []api.Timing `json:"early,omitempty"`
	Recorded []api.Timing `json:"recorded,omitempty"`
	// Next are the next step's prompts, if they were asked for.
	Next *Selected `json:"next,omitempty"`
}

// SampleStep takes one step of a pipelined run from its prompts to its rewards, while earlier steps are updated. It
// commits what TrainStep would commit, at the same places: if it fails, TrainStep goes on from what it has committed,
// and reports the failure.
func SampleStep(ctx workflow.Context, in TrainStepInput) (SampledStep, error) {
	s := newTrainStep(ctx, in)
	if err := s.answer(ctx); err != nil {
		return SampledStep{}, err
	}
	var out step.Out
	if err := step.Sample(s, s.ask(), &out); err != nil {
		if temporal.IsCanceledError(err) {
			return SampledStep{}, err
		}
		return SampledStep{}, s.fail(ctx, err)
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**%s** · step %d is sampled", in.Run, in.Step))
	return SampledStep{Sampled: out.Sampled, Timings: s.times.all, Early: s.times.early, Recorded: s.times.recorded,
		Next: s.selected(out.Next)}, nil
}
