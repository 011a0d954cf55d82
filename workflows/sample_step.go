package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// SampledStep is what SampleStep hands on to TrainStep: the manifests of the step's rollout and what it measured.
type SampledStep struct {
	// Prompts is the stage manifest of the step's prompts. Under dynamic sampling, Rounds are its parts instead.
	Prompts schema.Ref     `json:"prompts,omitzero"`
	Rounds  []schema.Ref   `json:"rounds,omitempty"`
	Stages  []api.StageRef `json:"stages,omitempty"`
	Shards  []SampledShard `json:"shards"`
	// Timings are the measured times that the step records, Early those before it; Recorded are those that its shards
	// have recorded.
	Timings  []api.Timing `json:"timings,omitempty"`
	Early    []api.Timing `json:"early,omitempty"`
	Recorded []api.Timing `json:"recorded,omitempty"`
	// Next are the next step's prompts, if they were asked for.
	Next *Selected `json:"next,omitempty"`
}

// SampledShard is one shard of a SampledStep. Turns and Tools are there only if the step ran the shard's activities
// itself.
type SampledShard struct {
	Shard     int          `json:"shard"`
	Turns     []schema.Ref `json:"turns,omitempty"`
	Tools     []schema.Ref `json:"tools,omitempty"`
	Assembled schema.Ref   `json:"assembled"`
	Graded    schema.Ref   `json:"graded,omitzero"`
	Judged    schema.Ref   `json:"judged,omitzero"`
	Called    schema.Ref   `json:"called,omitzero"`
	Scored    api.Scored   `json:"scored"`
}

// SampleStep takes one step of a pipelined run from its prompts to its rewards, while earlier steps are updated. It
// commits what TrainStep would commit, at the same places: if it fails, TrainStep goes on from what it has committed,
// and reports the failure.
func SampleStep(ctx workflow.Context, in TrainStepInput) (SampledStep, error) {
	s := newTrainStep(ctx, in)
	if err := s.answer(ctx); err != nil {
		return SampledStep{}, err
	}
	ctx = withTimeouts(ctx, in.Timeouts)
	selected := s.selectAhead(ctx)
	shards, err := s.sample(ctx)
	if err != nil {
		if temporal.IsCanceledError(err) {
			return SampledStep{}, err
		}
		return SampledStep{}, s.fail(ctx, err)
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**%s** · step %d is sampled", in.Run, in.Step))
	out := SampledStep{Prompts: s.prompts, Rounds: s.rounds, Stages: s.stages, Timings: s.times.all,
		Early: s.times.early, Recorded: s.times.recorded, Next: selected(ctx)}
	for _, r := range shards {
		out.Shards = append(out.Shards, SampledShard{Shard: r.shard, Turns: r.turns, Tools: r.tools,
			Assembled: r.assembled, Graded: r.graded, Judged: r.judged, Called: r.called, Scored: r.scored})
	}
	return out, nil
}

// sampled returns the step's shards: those that SampleStep has made, or the step's own.
func (s *trainStep) sampled(ctx workflow.Context) ([]shardRollout, error) {
	made := s.in.Sampled
	if made == nil {
		return s.sample(ctx)
	}
	s.scope.Gen = s.in.Gen
	s.prompts, s.rounds, s.stages = made.Prompts, made.Rounds, made.Stages
	s.times = timings{all: made.Timings, recorded: made.Recorded, early: made.Early}
	var shards []shardRollout
	for _, r := range made.Shards {
		if s.skipped(r.Shard) {
			continue
		}
		shards = append(shards, shardRollout{shard: r.Shard, turns: r.Turns, tools: r.Tools, assembled: r.Assembled,
			graded: r.Graded, judged: r.Judged, called: r.Called, scored: r.Scored,
			grade: s.plan.Grade, judge: s.plan.Judge, function: s.plan.Function, models: s.plan.Summaries})
	}
	return shards, nil
}

// sampling is the policy that the step is sampled from.
func (s *trainStep) sampling() api.PolicyRef {
	if s.in.Sampling != nil {
		return *s.in.Sampling
	}
	return s.in.Policy
}
