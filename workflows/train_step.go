package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities/api"
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
	// Direct makes the step run the activities of few short shards itself and write fewer search attributes, because a
	// hop between workflows takes about as long as a short stage. Steps of earlier versions lack it.
	Direct bool `json:"direct,omitempty"`
}

// TrainStepResult is the next policy and the figures of the step.
type TrainStepResult struct {
	Policy api.PolicyRef `json:"policy"`
	Buffer schema.Ref    `json:"buffer,omitzero"` // after the step
	Home   string        `json:"home,omitempty"`  // the host whose engine holds the next policy
	Line   StepLine      `json:"line"`
	// Timings are the measured times of the step's activities, for the record.
	Timings []api.Timing `json:"timings"`
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

// changeShards is the change that made each shard of a step a workflow of its own.
const changeShards = "shard-workflows"

// shardWorkflows reports whether the step's shards are workflows of their own. They are not in a step that an earlier
// version began, nor if they are few and short.
func (s *trainStep) shardWorkflows(ctx workflow.Context) bool {
	if s.direct && fewActivities(s.plan) {
		return false
	}
	return workflow.GetVersion(ctx, changeShards, workflow.DefaultVersion, 1) >= 1
}

// mostDirect is how many activities of its shards a step may run itself: its history grows by 6 events with each.
const mostDirect = 64

// fewActivities reports whether the shards of a round have few activities, all on one host.
func fewActivities(plan api.Plan) bool {
	return plan.Hosts <= 1 && plan.Dynamic == nil && plan.Shards*(2*plan.MaxTurns+3) <= mostDirect
}

// TrainStep is one pass prompts → rollout → sandbox → grade → reward → resample → logprobs → advantage → buffer →
// update → publish. The shards of a rollout run concurrently. Grade, logprobs and buffer run only if the recipe needs
// them.
func TrainStep(ctx workflow.Context, in TrainStepInput) (TrainStepResult, error) {
	s := &trainStep{in: in, pass: newPass(&position{run: in.Run, step: in.Step, direct: in.Direct}, in.Prepared),
		home: newHome(ctx, in.Home, in.Prepared.Plan)}
	if err := workflow.SetQueryHandler(ctx, QueryProgress, func() (string, error) { return s.stage, nil }); err != nil {
		return TrainStepResult{}, fmt.Errorf("register query %s: %w", QueryProgress, err)
	}
	result, err := s.execute(withTimeouts(ctx, in.Timeouts))
	if err != nil && !temporal.IsCanceledError(err) {
		return TrainStepResult{}, s.fail(ctx, err)
	}
	return result, err
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
	shards, err := s.sample(ctx)
	if err != nil {
		return TrainStepResult{}, err
	}
	made, err := s.commitRollout(ctx, shards)
	if err != nil {
		return TrainStepResult{}, err
	}
	selection, err := s.resample(ctx, &made)
	if err != nil {
		return TrainStepResult{}, err
	}
	if made.outputs, err = s.logprobs(ctx, shards, selection.Manifest); err != nil {
		return TrainStepResult{}, err
	}
	batch, err := s.advantage(ctx, &made)
	if err != nil {
		return TrainStepResult{}, err
	}
	buffer, err := s.buffer(ctx, &made)
	if err != nil {
		return TrainStepResult{}, err
	}

	s.enter(ctx, api.StageUpdate)
	update, err := atHome(ctx, s.home, s.scope, api.UpdatePolicy, fmt.Sprintf("%d rows, %d tokens", batch.Rows,
		batch.Tokens),
		api.UpdateInput{Scope: s.scope, Batch: batch.Manifest, Policy: s.in.Policy, Buffer: buffer.Manifest},
		(*api.Updated).Its)
	if err != nil {
		return TrainStepResult{}, err
	}
	s.finish(api.StageUpdate, update.Manifest, update.Timing)

	if err := s.publish(ctx, update.Policy); err != nil {
		return TrainStepResult{}, err
	}
	line := s.line(shards, selection, update)
	line.Buffer = bufferLine(buffer, update)
	return TrainStepResult{Policy: update.Policy, Buffer: buffer.Manifest, Home: s.home.host, Line: line,
		Timings: s.times.all}, nil
}

// commitRollout commits the stage manifests of the sharded stages and returns the sources of the stages after them. A
// shard that ran as its own workflow passes only its reward manifest, and the activity finds the other manifests from
// it. So the payload does not grow with the number of turns.
func (s *trainStep) commitRollout(ctx workflow.Context, shards []shardRollout) (sources, error) {
	in := api.CommitInput{Scope: s.scope, Stages: s.promptParts()}
	if s.plan.Interleaved || s.shardWorkflows(ctx) {
		for _, r := range shards {
			in.Rewards = append(in.Rewards, r.scored.Manifest)
		}
	} else {
		in.Stages = append(in.Stages, stageParts(shards)...)
	}
	committed, err := s.commitShards(ctx, in)
	if err != nil {
		return sources{}, err
	}
	if len(s.rounds) > 0 {
		s.prompts = committed.prompts
	}
	return sources{
		scope: s.scope, chain: s.plan.Chain, prompts: s.prompts, excluded: s.in.Skip,
		turns: committed.turns, rewards: committed.rewards, before: s.in.Buffer,
	}, nil
}

// logprobs computes the token outputs of the kept trajectories shard by shard and commits the stage. If the recipe
// needs no token outputs, it does nothing and returns a zero ref.
func (s *trainStep) logprobs(ctx workflow.Context, shards []shardRollout, selection schema.Ref) (schema.Ref, error) {
	if !s.plan.Logprobs {
		return schema.Ref{}, nil
	}
	s.enter(ctx, api.StageLogprobs)
	done := make([]api.TokenOutputs, len(shards))
	err := sideBySideOf(ctx, len(shards), func(ctx workflow.Context, i int) (err error) {
		r := &shards[i]
		done[i], err = atHome(ctx, s.home, s.scope, api.ComputeTokenOutputs, fmt.Sprintf("shard %d", r.shard),
			api.TokenOutputsInput{
				Scope: s.scope, Shard: r.shard, Assembled: r.assembled, Selection: selection, Policy: s.in.Policy,
			}, (*api.TokenOutputs).Its)
		if err != nil {
			return r.at(api.StageLogprobs, -1, err)
		}
		return nil
	})
	if err != nil {
		return schema.Ref{}, err
	}
	parts := make([]schema.Ref, len(done))
	for i, d := range done {
		parts[i] = d.Manifest
		s.times.add(d.Timing)
	}
	ref, timing, err := commitStage(ctx, s.scope, api.StageLogprobs, parts)
	if err != nil {
		return schema.Ref{}, err
	}
	s.finish(api.StageLogprobs, ref, timing)
	return ref, nil
}

// buffer takes the replay buffer through the step. If the recipe has no buffer, it does nothing and returns a zero
// result.
func (s *trainStep) buffer(ctx workflow.Context, made *sources) (api.Buffered, error) {
	if !s.plan.ReplayBuffer {
		return api.Buffered{}, nil
	}
	s.enter(ctx, api.StageBuffer)
	out, err := made.buffer(ctx)
	if err == nil {
		s.finish(api.StageBuffer, out.Manifest, out.Timing)
	}
	return out, err
}

// sources are the inputs of a step's pure stages. A step and a replay fill them in and call the stages in order; each
// stage replaces its field with its new manifest.
type sources struct {
	scope     api.Scope
	chain     string // what resample runs, for people
	prompts   schema.Ref
	excluded  []api.ExcludedShard
	turns     []schema.Ref
	rewards   schema.Ref
	selection schema.Ref
	outputs   schema.Ref // zero where the recipe has no stage logprobs
	batch     schema.Ref
	before    schema.Ref // the replay buffer after the previous step
}

// again makes a stage that needs nothing but its sources.
func (s *sources) again(ctx workflow.Context, stage string) (schema.Ref, error) {
	switch stage {
	case api.StageResample:
		out, err := s.resample(ctx)
		return out.Manifest, err
	case api.StageAdvantage:
		out, err := s.advantage(ctx)
		return out.Manifest, err
	case api.StageBuffer:
		out, err := s.buffer(ctx)
		return out.Manifest, err
	}
	return schema.Ref{}, fmt.Errorf("no activity for stage %s", stage)
}

func (s *sources) resample(ctx workflow.Context) (api.Resampled, error) {
	out, err := call[api.Resampled](ctx, api.Resample, s.chain, api.ResampleInput{
		Scope: s.scope, Rewards: s.rewards, Prompts: s.prompts, Excluded: s.excluded,
	})
	s.selection = out.Manifest
	return out, err
}

func (s *sources) advantage(ctx workflow.Context) (api.Advantages, error) {
	out, err := call[api.Advantages](ctx, api.ComputeAdvantages, "the training batch", api.AdvantageInput{
		Scope: s.scope, Turns: s.turns, Rewards: s.rewards, Selection: s.selection, Outputs: s.outputs,
	})
	s.batch = out.Manifest
	return out, err
}

func (s *sources) buffer(ctx workflow.Context) (api.Buffered, error) {
	return call[api.Buffered](ctx, api.UpdateReplayBuffer, "what is learnt from again", api.BufferInput{
		Scope: s.scope, Previous: s.before, Rewards: s.rewards, Batch: s.batch,
	})
}

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
