package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// sample takes the step's prompts to rewards, once or in rounds of dynamic sampling. Each round continues the shard
// and group numbers of the previous round.
func (s *trainStep) sample(ctx workflow.Context) ([]shardRollout, error) {
	if s.plan.Dynamic != nil {
		return s.inRounds(ctx, *s.plan.Dynamic)
	}
	if made := s.in.Prompts; made != nil {
		s.add(api.StagePrompts, made.Manifest)
		s.times.early = append(s.times.early, made.Timing)
		s.prompts = made.Manifest
	} else {
		s.enter(ctx, api.StagePrompts)
		prompts, err := call[api.Done](ctx, api.SelectPrompts, "the step's problems",
			api.PromptsInput{Scope: s.scope})
		if err != nil {
			return nil, err
		}
		s.finish(api.StagePrompts, prompts.Manifest, prompts.Timing)
		s.prompts = prompts.Manifest
	}
	s.scope.Gen = s.in.Gen
	s.enter(ctx, api.StageRollout)
	return s.rollout(ctx, 0, s.prompts)
}

// inRounds samples until enough groups are informative. This is decided from the committed rewards of each shard, so
// a step that is resumed goes through the same rounds.
func (s *trainStep) inRounds(ctx workflow.Context, dynamic api.Dynamic) ([]shardRollout, error) {
	s.scope.Gen = s.in.Gen // the stage's manifest lists the rounds, and another rollout may have more of them
	var shards []shardRollout
	for informative := 0; ; {
		more, err := s.round(ctx, len(s.rounds), dynamic.Tries)
		if err != nil {
			return nil, err
		}
		for _, r := range more {
			informative += r.scored.Informative
		}
		shards = append(shards, more...)
		if dynamic.Enough(s.in.Step, len(s.rounds), informative) {
			return shards, nil
		}
	}
}

// round samples one round.
func (s *trainStep) round(ctx workflow.Context, round, tries int) ([]shardRollout, error) {
	words := fmt.Sprintf("round %d of at most %d", round+1, tries)
	s.enter(ctx, api.StagePrompts)
	prompts, err := call[api.Done](ctx, api.SelectPrompts, words, api.PromptsInput{Scope: s.scope, Round: &round})
	if err != nil {
		return nil, err
	}
	s.rounds = append(s.rounds, prompts.Manifest)
	s.times.add(prompts.Timing)
	s.enter(ctx, api.StageRollout)
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**%s** · step %d · %s, %s", s.in.Run, s.in.Step, api.StageRollout,
		words))
	return s.rollout(ctx, round*s.plan.Shards, prompts.Manifest)
}

// promptParts lists the prompts of the rounds, if the step was sampled in rounds.
func (s *trainStep) promptParts() []api.StageParts {
	if len(s.rounds) == 0 {
		return nil
	}
	return []api.StageParts{{Stage: api.StagePrompts, Turn: -1, Parts: s.rounds}}
}
