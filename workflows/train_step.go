package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/schema"
)

// TrainStepInput asks for one step.
type TrainStepInput struct {
	Run      string         `json:"run_id"`
	Step     int            `json:"step"`
	Prepared wire.Prepared  `json:"prepared"`
	Policy   wire.PolicyRef `json:"policy"`
	// Buffer is the replay buffer after the step before; zero where it is empty.
	Buffer schema.Ref `json:"buffer,omitzero"`
	// Gen is the generation of everything after the prompts: above 0 where the step is taken again
	// with other settings.
	Gen int `json:"gen,omitempty"`
	// Skip lists shards that a person chose to go on without.
	Skip []wire.ExcludedShard `json:"skip,omitempty"`
	// Home is the host whose engine holds the policy, as far as is known.
	Home string `json:"home,omitempty"`
	// Timeouts are time limits in seconds of activities, where a person set other ones.
	Timeouts map[string]float64 `json:"timeouts,omitempty"`
}

// TrainStepResult is the next policy and the step in figures.
type TrainStepResult struct {
	Policy wire.PolicyRef `json:"policy"`
	Buffer schema.Ref     `json:"buffer,omitzero"` // after the step
	Home   string         `json:"home,omitempty"`  // the host whose engine holds the next policy
	Line   StepLine       `json:"line"`
	// Timings are the step's activities as measured, for the record.
	Timings []wire.Timing `json:"timings"`
}

// trainStep is TrainStep's state.
type trainStep struct {
	in     TrainStepInput
	scope  wire.Scope
	stages []wire.StageRef // committed stage manifests, in stage order
	// prompts is the stage manifest of the step's prompts, and rounds its parts where dynamic sampling
	// has made some.
	prompts schema.Ref
	rounds  []schema.Ref
	times   timings
	stage   string
	home    *home
}

// TrainStep is one pass prompts → rollout → sandbox → grade → reward → resample → forward → advantage →
// buffer → update → publish, the shards of a rollout side by side. Grade, forward and buffer run where the
// recipe needs them.
func TrainStep(ctx workflow.Context, in TrainStepInput) (TrainStepResult, error) {
	s := &trainStep{in: in, scope: scoped(in.Run, in.Step, in.Prepared), home: newHome(ctx, in.Home, in.Prepared.Plan)}
	if err := workflow.SetQueryHandler(ctx, QueryProgress, func() (string, error) { return s.stage, nil }); err != nil {
		return TrainStepResult{}, fmt.Errorf("register query %s: %w", QueryProgress, err)
	}
	result, err := s.execute(withTimeouts(ctx, in.Timeouts))
	if err != nil && !temporal.IsCanceledError(err) {
		return TrainStepResult{}, s.fail(ctx, err)
	}
	return result, err
}

// fail ends the step with what failed; its run parks until a person decides.
func (s *trainStep) fail(ctx workflow.Context, err error) error {
	all := failures(err, s.stage)
	parked := Parked{Step: s.in.Step, Kind: all[0].Kind, Failures: all}
	workflow.SetCurrentDetails(ctx, parked.list()+fmt.Sprintf("\nWhat is committed is kept. The run `%s` waits for a decision.\n", s.in.Run))
	// Upserting fails only for keys that cannot be encoded; this is a constant.
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrFailureKind.ValueSet(parked.Kind), attrStage.ValueSet(all[0].Stage))
	return stepFailed(all)
}

func (s *trainStep) execute(ctx workflow.Context) (TrainStepResult, error) {
	lanes, err := s.sample(ctx)
	if err != nil {
		return TrainStepResult{}, err
	}
	rewards, turns, err := s.commitLanes(ctx, lanes)
	if err != nil {
		return TrainStepResult{}, err
	}

	s.enter(ctx, wire.StageResample)
	selection, err := call[wire.Resampled](ctx, wire.Resample, s.in.Prepared.Plan.Chain, wire.ResampleInput{
		Scope: s.scope, Rewards: rewards, Prompts: s.prompts, Excluded: s.in.Skip,
	})
	if err != nil {
		return TrainStepResult{}, err
	}
	s.finish(wire.StageResample, selection.Manifest, selection.Timing)

	outputs, err := s.forward(ctx, lanes, selection.Manifest)
	if err != nil {
		return TrainStepResult{}, err
	}

	s.enter(ctx, wire.StageAdvantage)
	batch, err := call[wire.Advantages](ctx, wire.ComputeAdvantages, "the training batch", wire.AdvantageInput{
		Scope: s.scope, Turns: turns, Rewards: rewards, Selection: selection.Manifest, Outputs: outputs,
	})
	if err != nil {
		return TrainStepResult{}, err
	}
	s.finish(wire.StageAdvantage, batch.Manifest, batch.Timing)

	buffer, err := s.buffer(ctx, rewards, batch.Manifest)
	if err != nil {
		return TrainStepResult{}, err
	}

	s.enter(ctx, wire.StageUpdate)
	update, err := atHome(ctx, s.home, s.scope, wire.UpdatePolicy, fmt.Sprintf("%d rows, %d tokens", batch.Rows, batch.Tokens),
		wire.UpdateInput{Scope: s.scope, Batch: batch.Manifest, Policy: s.in.Policy, Buffer: buffer.Manifest}, (*wire.Updated).Its)
	if err != nil {
		return TrainStepResult{}, err
	}
	s.finish(wire.StageUpdate, update.Manifest, update.Timing)

	if err := s.publish(ctx, update.Policy); err != nil {
		return TrainStepResult{}, err
	}
	line := s.line(lanes, selection, update)
	line.Replay = replayLine(buffer, update)
	return TrainStepResult{Policy: update.Policy, Buffer: buffer.Manifest, Home: s.home.host, Line: line, Timings: s.times.all}, nil
}

// forward computes the kept trajectories' token outputs shard by shard and commits the stage. It is
// left out, and the ref zero, where the recipe needs none.
func (s *trainStep) forward(ctx workflow.Context, lanes []lane, selection schema.Ref) (schema.Ref, error) {
	if !s.in.Prepared.Plan.Forward {
		return schema.Ref{}, nil
	}
	s.enter(ctx, wire.StageForward)
	done := make([]wire.Forwarded, len(lanes))
	err := sideBySideOf(ctx, len(lanes), func(ctx workflow.Context, i int) (err error) {
		l := &lanes[i]
		done[i], err = atHome(ctx, s.home, s.scope, wire.ComputeTokenOutputs, fmt.Sprintf("shard %d", l.shard), wire.ForwardInput{
			Scope: s.scope, Shard: l.shard, Turns: l.turns, Selection: selection, Policy: s.in.Policy,
		}, (*wire.Forwarded).Its)
		if err != nil {
			return l.at(wire.StageForward, -1, err)
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
	ref, timing, err := commitStage(ctx, s.scope, wire.StageForward, parts)
	if err != nil {
		return schema.Ref{}, err
	}
	s.finish(wire.StageForward, ref, timing)
	return ref, nil
}

// commitStage commits one stage out of its shards' manifests.
func commitStage(ctx workflow.Context, scope wire.Scope, stage string, parts []schema.Ref) (schema.Ref, wire.Timing, error) {
	out, err := call[wire.Committed](ctx, wire.CommitStages, stage, wire.CommitInput{
		Scope: scope, Stages: []wire.StageParts{{Stage: stage, Turn: -1, Parts: parts}},
	})
	if err != nil {
		return schema.Ref{}, wire.Timing{}, err
	}
	if len(out.Refs) != 1 {
		return schema.Ref{}, wire.Timing{}, fmt.Errorf("commit stages: asked for 1 manifest, got %d", len(out.Refs))
	}
	return out.Refs[0], out.Timing, nil
}

// buffer takes the replay buffer through the step. It is left out, and all of it zero, where the recipe
// has none.
func (s *trainStep) buffer(ctx workflow.Context, rewards, batch schema.Ref) (wire.Buffered, error) {
	if !s.in.Prepared.Plan.Replay {
		return wire.Buffered{}, nil
	}
	s.enter(ctx, wire.StageBuffer)
	out, err := call[wire.Buffered](ctx, wire.UpdateReplayBuffer, "what is learnt from again", wire.BufferInput{
		Scope: s.scope, Previous: s.in.Buffer, Rewards: rewards, Batch: batch,
	})
	if err == nil {
		s.finish(wire.StageBuffer, out.Manifest, out.Timing)
	}
	return out, err
}

// publish makes the rollout engine serve the new policy and commits the step's head.
func (s *trainStep) publish(ctx workflow.Context, policy wire.PolicyRef) error {
	s.enter(ctx, wire.StagePublish)
	published, err := sample(ctx, s.home, s.scope, wire.PublishPolicy, "serve "+short(policy.Digest), wire.PublishInput{
		Scope: s.scope, Policy: policy, Stages: s.stages,
	}, (*wire.Published).Its)
	if err != nil {
		return err
	}
	s.times.add(published.Timing)
	return nil
}

// commitLanes commits the stage manifests of everything that was done shard by shard. It
// returns the rewards' and the turns' stage manifests, the turns in order.
func (s *trainStep) commitLanes(ctx workflow.Context, lanes []lane) (rewards schema.Ref, turns []schema.Ref, err error) {
	s.enter(ctx, wire.StageReward)
	parts := append(s.promptParts(), stageParts(lanes)...)
	committed, err := call[wire.Committed](ctx, wire.CommitStages, "rollout, sandbox, assemble, reward", wire.CommitInput{
		Scope: s.scope, Stages: parts,
	})
	if err != nil {
		return rewards, nil, err
	}
	if len(committed.Refs) != len(parts) {
		return rewards, nil, fmt.Errorf("commit stages: asked for %d manifests, got %d", len(parts), len(committed.Refs))
	}
	for i, part := range parts {
		s.stages = append(s.stages, wire.StageRef{Stage: part.Stage, Ref: committed.Refs[i]})
		switch part.Stage {
		case wire.StagePrompts:
			s.prompts = committed.Refs[i]
		case wire.StageRollout:
			turns = append(turns, committed.Refs[i])
		case wire.StageReward:
			rewards = committed.Refs[i]
		}
	}
	s.times.add(committed.Timing)
	return rewards, turns, nil
}

func (s *trainStep) enter(ctx workflow.Context, stage string) {
	s.stage = stage
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**%s** · step %d · %s", s.in.Run, s.in.Step, stage))
	// Upserting fails only for keys that cannot be encoded; these are constants.
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrStage.ValueSet(stage))
}

func (s *trainStep) finish(stage string, ref schema.Ref, t wire.Timing) {
	s.stages = append(s.stages, wire.StageRef{Stage: stage, Ref: ref})
	s.times.add(t)
}

// line sums the lanes' and stages' statistics into the step's line.
func (s *trainStep) line(lanes []lane, selection wire.Resampled, update wire.Updated) StepLine {
	l := StepLine{
		Step: s.in.Step, KeptGroups: selection.KeptGroups, DroppedGroups: selection.DroppedGroups,
		Entropy: update.Entropy, KL: update.KL, ClipFraction: update.ClipFraction, GradNorm: update.GradNorm,
		Rounds: len(s.rounds), ReferenceKL: update.ReferenceKL, Advantages: update.Advantages, Critic: update.Critic, Device: update.Timing.Device, Excluded: selection.Reasons[schema.ReasonExcluded], Seconds: s.times.span(), StageSeconds: s.times.byStage(),
	}
	var reward float64
	var successes, errors, calls int
	for _, lane := range lanes {
		l.Trajectories += lane.scored.Trajectories
		l.ToolCalls += lane.scored.ToolCalls
		l.Tokens += lane.scored.Tokens
		reward += lane.scored.RewardSum
		successes += lane.scored.Successes
		errors += lane.scored.PositiveErrors
		calls += lane.scored.PositiveCalls
	}
	if n := float64(l.Trajectories); n > 0 {
		l.Reward, l.Success = reward/n, float64(successes)/n
	}
	if calls > 0 {
		l.ToolErrorPositive = float64(errors) / float64(calls)
	}
	return l
}

// short is a digest's beginning, for summaries.
func short(digest string) string { return digest[:min(12, len(digest))] }
