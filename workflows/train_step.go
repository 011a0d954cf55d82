package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

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
	pass
	in TrainStepInput
	// prompts is the stage manifest of the step's prompts; rounds are its parts under dynamic sampling.
	prompts schema.Ref
	rounds  []schema.Ref
	home    *home
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
	result, err := s.execute(withTimeouts(ctx, in.Timeouts))
	if err != nil && !temporal.IsCanceledError(err) {
		return TrainStepResult{}, s.fail(ctx, err)
	}
	return result, err
}

func newTrainStep(ctx workflow.Context, in TrainStepInput) *trainStep {
	return &trainStep{in: in, pass: newPass(&position{run: in.Run, step: in.Step, longOnly: true}, in.Prepared),
		home: newHome(ctx, in.Home, in.Prepared.Plan)}
}

// answer makes a step's own workflow answer the query for its stage.
func (s *trainStep) answer(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, QueryProgress, func() (string, error) { return s.stage, nil }); err != nil {
		return fmt.Errorf("register query %s: %w", QueryProgress, err)
	}
	return nil
}

// fail ends the step with its failures; the run parks until a person decides.
func (s *trainStep) fail(ctx workflow.Context, err error) error {
	all := failures(err, s.stage)
	parked := Parked{Step: s.in.Step, Kind: all[0].Kind, Failures: all}
	workflow.SetCurrentDetails(ctx,
		parked.list()+fmt.Sprintf("\nWhat is committed is kept. The run `%s` waits for a decision.\n", s.in.Run))
	// Upserting fails only for keys that cannot be encoded; this is a constant.
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrFailureKind.ValueSet(parked.Kind),
		attrStage.ValueSet(all[0].Stage))
	return stepFailed(all)
}

func (s *trainStep) execute(ctx workflow.Context) (TrainStepResult, error) {
	shards, err := s.sampled(ctx)
	if err != nil {
		return TrainStepResult{}, err
	}
	// The sampler has nothing else to do now. The publication waits for the evaluation, because it names it.
	measured, selected := s.measure(ctx), s.selectAhead(ctx)
	learnt, update, err := s.train(ctx, shards)
	evaluated, failed := measured(ctx)
	if err := errors.Join(err, failed); err != nil {
		return TrainStepResult{}, err
	}
	if !s.finishes() {
		if err := s.publish(ctx, update.Policy); err != nil {
			return TrainStepResult{}, err
		}
	}
	line := s.line(shards, learnt.selection, update)
	line.Buffer = bufferLine(learnt.buffer, update)
	return TrainStepResult{Policy: update.Policy, Buffer: learnt.buffer.Manifest, Home: s.home.host, Line: line,
		Timings: append(s.times.early, s.times.all...), Evaluated: evaluated, Next: selected(ctx)}, nil
}

// train takes the step from its shards to the updated policy, and publishes that if nothing else has to end before.
func (s *trainStep) train(ctx workflow.Context, shards []shardRollout) (learnt, api.Updated, error) {
	learnt, err := s.learn(ctx, shards)
	if err != nil {
		return learnt, api.Updated{}, err
	}
	s.enter(ctx, api.StageUpdate)
	summary := fmt.Sprintf("%d rows, %d tokens", learnt.batch.Rows, learnt.batch.Tokens)
	in := api.UpdateInput{Scope: s.scope, Batch: learnt.batch.Manifest, Policy: s.in.Policy,
		Buffer: learnt.buffer.Manifest}
	var out api.Finished
	if s.finishes() {
		out, err = atHome(ctx, s.home, s.scope, api.UpdateAndPublish, summary,
			api.FinishInput{UpdateInput: in, Stages: s.stages, Timeouts: timeoutsOf(ctx)}, (*api.Finished).Its)
	} else {
		out.Updated, err = atHome(ctx, s.home, s.scope, api.UpdatePolicy, summary, in, (*api.Updated).Its)
	}
	if err != nil {
		return learnt, api.Updated{}, err
	}
	s.finish(api.StageUpdate, out.Manifest, out.Timing)
	if s.finishes() {
		s.times.add(out.Published.Timing)
	}
	return learnt, out.Updated, nil
}

// finishes reports whether the update publishes the policy, too. With an evaluation alongside the step it does not:
// the publication names the evaluation, and waits for it.
func (s *trainStep) finishes() bool { return s.plan.Finish && s.in.Evaluate == nil }

// publish makes the rollout engine serve the new policy and commits the step's head.
func (s *trainStep) publish(ctx workflow.Context, policy api.PolicyRef) error {
	s.enter(ctx, api.StagePublish)
	published, err := sample(ctx, s.home, s.scope, api.PublishPolicy, "serve "+short(policy.Digest), api.PublishInput{
		Scope: s.scope, Policy: policy, Stages: s.stages,
	}, (*api.Published).Its)
	if err != nil {
		return err
	}
	s.times.add(published.Timing)
	return nil
}
