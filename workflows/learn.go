package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// learnt holds the results of the stages between a step's rollout and its update.
type learnt struct {
	selection api.Resampled
	batch     api.Advantages
	buffer    api.Buffered
}

// learn takes the step from its shards to what the update learns from.
func (s *trainStep) learn(ctx workflow.Context, shards []shardRollout) (learnt, error) {
	if s.plan.Interleaved {
		return s.learnTogether(ctx, shards)
	}
	var out learnt
	made, err := s.commitRollout(ctx, shards)
	if err != nil {
		return out, err
	}
	if out.selection, err = s.resample(ctx, &made); err != nil {
		return out, err
	}
	if made.outputs, err = s.logprobs(ctx, shards, out.selection.Manifest); err != nil {
		return out, err
	}
	if out.batch, err = s.advantage(ctx, &made); err != nil {
		return out, err
	}
	out.buffer, err = s.buffer(ctx, &made)
	return out, err
}

// learnTogether is learn with one activity for all stages, or two with the models' stage between them.
func (s *trainStep) learnTogether(ctx workflow.Context, shards []shardRollout) (learnt, error) {
	commit := s.commitInput(ctx, shards)
	in := api.BatchInput{Scope: s.scope, Commit: &commit, Prompts: s.prompts, Excluded: s.in.Skip,
		Models: s.plan.Logprobs, Buffer: s.plan.ReplayBuffer, Previous: s.in.Buffer, Timeouts: timeoutsOf(ctx)}
	s.enter(ctx, api.StageReward)
	made, err := s.makeBatch(ctx, s.plan.Chain, in)
	if err != nil {
		return learnt{}, err
	}
	found := api.RolledOut(made.Committed)
	if len(s.rounds) > 0 {
		s.prompts = found.Prompts
	}
	s.stages = append(s.stages, made.Committed...)
	s.add(api.StageResample, made.Resampled.Manifest)
	out := learnt{selection: made.Resampled, batch: made.Batch, buffer: made.Buffered}
	if s.plan.Logprobs {
		in.Commit, in.Models, in.Turns, in.Rewards, in.Selection = nil, false, found.Turns, found.Rewards,
			out.selection.Manifest
		if in.Outputs, err = s.logprobs(ctx, shards, in.Selection); err != nil {
			return out, err
		}
		s.enter(ctx, api.StageAdvantage)
		if made, err = s.makeBatch(ctx, "the training batch", in); err != nil {
			return out, err
		}
		out.batch, out.buffer = made.Batch, made.Buffered
	}
	s.add(api.StageAdvantage, out.batch.Manifest)
	if s.plan.ReplayBuffer {
		s.add(api.StageBuffer, out.buffer.Manifest)
	}
	return out, nil
}

// makeBatch runs the stages of in, and adds their measured times.
func (s *trainStep) makeBatch(ctx workflow.Context, summary string, in api.BatchInput) (api.Batch, error) {
	out, err := call[api.Batch](ctx, api.MakeBatch, summary, in)
	s.times.add(out.Timings...)
	return out, err
}

// commitRollout commits the stage manifests of the sharded stages and returns the sources of the stages after them. A
// shard that ran as its own workflow passes only its reward manifest, and the activity finds the other manifests from
// it. So the payload does not grow with the number of turns.
func (s *trainStep) commitRollout(ctx workflow.Context, shards []shardRollout) (sources, error) {
	in := s.commitInput(ctx, shards)
	committed, err := s.commitShards(ctx, in)
	if err != nil {
		return sources{}, err
	}
	if len(s.rounds) > 0 {
		s.prompts = committed.Prompts
	}
	return sources{
		scope: s.scope, chain: s.plan.Chain, prompts: s.prompts, excluded: s.in.Skip,
		turns: committed.Turns, rewards: committed.Rewards, before: s.in.Buffer,
	}, nil
}

// commitInput asks for the stage manifests of the step's sharded stages.
func (s *trainStep) commitInput(ctx workflow.Context, shards []shardRollout) api.CommitInput {
	in := api.CommitInput{Scope: s.scope, Stages: s.promptParts()}
	if s.plan.Interleaved || !fewActivities(s.plan) {
		for _, r := range shards {
			in.Rewards = append(in.Rewards, r.scored.Manifest)
		}
	} else {
		in.Stages = append(in.Stages, stageParts(shards)...)
	}
	return in
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
				Sampling: s.in.Sampling,
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
