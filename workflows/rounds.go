package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities/wire"
)

// sample takes the step's prompts to rewards: once, or in rounds of dynamic sampling. Shards and groups
// of a round are numbered on from those of the round before.
func (s *trainStep) sample(ctx workflow.Context) ([]lane, error) {
	if s.in.Prepared.Plan.Dynamic != nil {
		return s.inRounds(ctx, *s.in.Prepared.Plan.Dynamic)
	}
	s.enter(ctx, wire.StagePrompts)
	prompts, err := call[wire.Done](ctx, wire.SelectPrompts, "the step's problems", wire.PromptsInput{Scope: s.scope})
	if err != nil {
		return nil, err
	}
	s.finish(wire.StagePrompts, prompts.Manifest, prompts.Timing)
	s.prompts = prompts.Manifest
	s.scope.Gen = s.in.Gen
	s.enter(ctx, wire.StageRollout)
	return s.rollout(ctx, 0, prompts.Manifest)
}

// inRounds samples until enough groups are informative. Whether they are follows from what each
// shard's reward stage has committed, so a step that is taken up again goes through the same rounds.
func (s *trainStep) inRounds(ctx workflow.Context, dynamic wire.Dynamic) ([]lane, error) {
	s.scope.Gen = s.in.Gen // the stage's manifest lists the rounds, which another rollout may have more of
	var lanes []lane
	for informative := 0; ; {
		more, err := s.round(ctx, len(s.rounds), dynamic.Tries)
		if err != nil {
			return nil, err
		}
		for _, l := range more {
			informative += l.scored.Informative
		}
		lanes = append(lanes, more...)
		if dynamic.Enough(s.in.Step, len(s.rounds), informative) {
			return lanes, nil
		}
	}
}

// round samples one round.
func (s *trainStep) round(ctx workflow.Context, round, tries int) ([]lane, error) {
	words := fmt.Sprintf("round %d of at most %d", round+1, tries)
	s.enter(ctx, wire.StagePrompts)
	prompts, err := call[wire.Done](ctx, wire.SelectPrompts, words, wire.PromptsInput{Scope: s.scope, Round: &round})
	if err != nil {
		return nil, err
	}
	s.rounds = append(s.rounds, prompts.Manifest)
	s.times.add(prompts.Timing)
	s.enter(ctx, wire.StageRollout)
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**%s** · step %d · %s, %s", s.in.Run, s.in.Step, wire.StageRollout, words))
	return s.rollout(ctx, round*s.in.Prepared.Plan.Shards, prompts.Manifest)
}

// promptParts lists the rounds' prompts, where the step was sampled in rounds.
func (s *trainStep) promptParts() []wire.StageParts {
	if len(s.rounds) == 0 {
		return nil
	}
	return []wire.StageParts{{Stage: wire.StagePrompts, Turn: -1, Parts: s.rounds}}
}
