package episodes

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/early"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/internal/judge"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// openVerdicts begins to get verdicts on the shard's answers; nil if they need no verdicts, have them already, or
// cannot get them from this worker, which the stages say. The caller closes it.
func (s *shardRun) openVerdicts(ctx context.Context, recipe *recipes.Recipe) (*early.Verdicts, error) {
	g, from := grading.New(recipe, s.in.Step), early.Sources{}
	if s.in.Grade && s.worker.Execution.Sandbox != nil && s.worker.Execution.Isolates(recipe) == nil {
		open, err := s.uncommitted(ctx, schema.StageGrade)
		if err != nil {
			return nil, err
		}
		if open {
			from.Grade, _ = early.GradeBy(recipe, s.worker.Execution.Sandbox, g.Tested())
			from.AtOnce = s.worker.Execution.CellsAtOnce()
		}
	}
	if s.in.Judge && recipe.Judge != nil {
		open, err := s.uncommitted(ctx, schema.StageJudge)
		if err != nil {
			return nil, err
		}
		if open {
			// the stage meets the same error
			from.Judge, _ = judge.Open(*recipe.Judge, s.worker.Execution.Judgements, s.in.Run)
		}
	}
	var err error
	if from.Function, err = s.scorer(ctx, recipe); err != nil {
		return nil, err
	}
	return early.New(ctx, g, from), nil
}

// uncommitted reports whether a stage of the shard is not committed yet.
func (s *shardRun) uncommitted(ctx context.Context, name string) (bool, error) {
	at := stage.Spec{Scope: s.in.Scope, Stage: name, Turn: -1, Shard: s.in.Shard}
	_, _, committed, err := s.worker.Record.Lookup(ctx, at.Place())
	return !committed, err
}

// scorer makes the scorer of the shard; nil if its recipe has no function, or one that takes several trajectories.
func (s *shardRun) scorer(ctx context.Context, recipe *recipes.Recipe) (*early.Scorer, error) {
	if !s.in.Function {
		return nil, nil
	}
	f, ok := recipe.Function()
	if !ok || f.Batch || f.Module == "" {
		return nil, nil
	}
	open, err := s.uncommitted(ctx, schema.StageFunction)
	if !open || err != nil {
		return nil, err
	}
	return early.NewScorer(s.worker.Execution.Functions, f, recipe.Environment.Declaration().Interactive), nil
}
