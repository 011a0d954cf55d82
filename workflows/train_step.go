package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// TrainStepInput asks for one step.
type TrainStepInput struct {
	Run      string        `json:"run_id"`
	Step     int           `json:"step"`
	Prepared api.Prepared  `json:"prepared"`
	Policy   api.PolicyRef `json:"policy"`
	// Buffer is the replay buffer after the previous step; zero where it is empty.
	Buffer schema.Ref `json:"buffer,omitzero"`
	// Gen is the generation of everything after the prompts. It is above 0 if the step runs again with other
	// settings.
	Gen int `json:"gen,omitempty"`
	// Skip lists shards that a person chose to skip.
	Skip []api.ExcludedShard `json:"skip,omitempty"`
	// Home is the host whose engine holds the policy, as far as the workflow knows.
	Home string `json:"home,omitempty"`
	// Timeouts are time limits of activities in seconds, where a person set others.
	Timeouts map[string]float64 `json:"timeouts,omitempty"`
	// Sampling is the policy that the step is sampled from, where that is not Policy: a pipelined run samples from
	// earlier ones.
	Sampling *api.PolicyRef `json:"sampling,omitempty"`
	// Sampled is the step's rollout, if SampleStep has made it.
	Sampled *SampledStep `json:"sampled,omitempty"`
	// Lag is the number of updates between Sampling and Policy.
	Lag int `json:"lag,omitempty"`
	// Evaluate asks for an evaluation of an earlier policy alongside the step, if one is due.
	Evaluate *api.EvaluateInput `json:"evaluate,omitempty"`
	// Prompts are the step's prompts, if the step before has selected them.
	Prompts *api.Done `json:"prompts,omitempty"`
	// SelectNext asks for the next step's prompts.
	SelectNext bool `json:"select_next,omitempty"`
}

// TrainStepResult is the next policy and the figures of the step.
type TrainStepResult struct {
	Policy api.PolicyRef `json:"policy"`
	Buffer schema.Ref    `json:"buffer,omitzero"` // after the step
	Home   string        `json:"home,omitempty"`  // the host whose engine holds the next policy
	Line   StepLine      `json:"line"`
	// Timings are the measured times of the step's activities, for the record.
	Timings []api.Timing `json:"timings"`
	// Evaluated is the result of the evaluation that TrainStepInput.Evaluate asks for.
	Evaluated *api.Evaluated `json:"evaluated,omitempty"`
	// Next are the next step's prompts, if they were asked for.
	Next *Selected `json:"next,omitempty"`
}

// trainStep is TrainStep's state.
type trainStep struct {
	*runner
	in TrainStepInput
}

// mostDirect is how many activities of its shards a step may run itself: its history grows by 6 events with each.
const mostDirect = 64

// fewActivities reports whether the shards of a round have few activities, all on one host. Then the step runs them
// itself, because a hop between workflows takes about as long as a short stage; otherwise each shard is a workflow.
func fewActivities(plan api.Plan) bool {
	return plan.Hosts <= 1 && plan.Dynamic == nil && plan.Shards*(2*plan.MaxTurns+3) <= mostDirect
}

// TrainStep is one pass prompts → rollout → sandbox → grade → reward → resample → logprobs → advantage → buffer →
// update → publish. The shards of a rollout run concurrently. Grade, logprobs and buffer run only if the recipe needs
// them.
func TrainStep(ctx workflow.Context, in TrainStepInput) (TrainStepResult, error) {
	s := newTrainStep(ctx, in)
	if err := s.answer(ctx); err != nil {
		return TrainStepResult{}, err
	}
	result, err := s.execute()
	if err != nil && !temporal.IsCanceledError(err) {
		return TrainStepResult{}, s.fail(ctx, err)
	}
	return result, err
}

func newTrainStep(ctx workflow.Context, in TrainStepInput) *trainStep {
	scope := scoped(in.Run, in.Step, in.Prepared)
	scope.Gen = in.Gen
	return &trainStep{in: in, runner: newRunner(ctx, &position{run: in.Run, step: in.Step, longOnly: true}, scope,
		in.Prepared.Plan, in.Home, in.Timeouts)}
}

// ask is what the driver is asked for.
func (s *trainStep) ask() *step.In {
	in := &step.In{Scope: s.scope, Plan: s.plan, Policy: s.in.Policy, Sampling: s.in.Policy, Buffer: s.in.Buffer,
		Skip: s.in.Skip, Record: shardsRecord(s.plan), Evaluate: s.in.Evaluate}
	if s.in.Sampling != nil {
		in.Sampling = *s.in.Sampling
	}
	if made := s.in.Prompts; made != nil {
		in.Prompts = &made.Manifest
		s.times.early = append(s.times.early, made.Timing)
	}
	if made := s.in.Sampled; made != nil {
		in.Sampled = &made.Sampled
		*s.times = timings{all: made.Timings, recorded: made.Recorded, early: made.Early}
	}
	if s.in.SelectNext {
		in.Next = &api.PromptsInput{Scope: scoped(s.in.Run, s.in.Step+1, s.in.Prepared)}
	}
	return in
}

// selected returns the next step's prompts, if there are any.
func (s *trainStep) selected(made *api.Done) *Selected {
	if made == nil {
		return nil
	}
	return &Selected{Step: s.in.Step + 1, Config: s.scope.Config, Done: *made}
}

// answer makes a step's own workflow answer the query for its stage.
func (s *trainStep) answer(ctx workflow.Context) error {
	return answer(ctx, QueryProgress, func() (string, error) { return s.at.stage, nil })
}

// fail ends the step with its failures; the run parks until a person decides.
func (s *trainStep) fail(ctx workflow.Context, err error) error {
	all := failures(err, s.at.stage)
	parked := Parked{Step: s.in.Step, Kind: all[0].Kind, Failures: all}
	workflow.SetCurrentDetails(ctx,
		parked.list()+fmt.Sprintf("\nWhat is committed is kept. The run `%s` waits for a decision.\n", s.in.Run))
	// Upserting fails only for keys that cannot be encoded; this is a constant.
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrFailureKind.ValueSet(parked.Kind),
		attrStage.ValueSet(all[0].Stage))
	return stepFailed(all)
}

func (s *trainStep) execute() (TrainStepResult, error) {
	var out step.Out
	if err := step.Take(s, s.ask(), &out); err != nil {
		return TrainStepResult{}, err
	}
	return TrainStepResult{Policy: out.Finished.Policy, Buffer: out.Learnt.Buffered.Manifest, Home: s.home.host,
		Line: s.line(out), Timings: append(s.times.early, s.times.all...), Evaluated: out.Evaluated,
		Next: s.selected(out.Next)}, nil
}
