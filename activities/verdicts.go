package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// verdict is a stage that gets verdicts on the answers of a shard before they are scored. The reward reads the
// committed verdicts, so the reward stays a function of the record, and a replay of it gets no new ones.
type verdict interface {
	// stage names the stage.
	stage() string
	// asked reports whether a recipe's reward reads the verdicts.
	asked(r *recipes.Recipe) bool
	// problems reports whether the questions hold the problems, which the prompts tell.
	problems() bool
	// ask gets the verdicts on answers, counts them in out, and puts their rows.
	ask(ctx context.Context, w *draft, q *questions, out *api.Verdicts) error
	// settle gives the grader the committed verdicts.
	settle(ctx context.Context, g *grading.Grader, made schema.Ref, trajectories []schema.TrajectoryRow) error
	// missing refuses a replay of the reward of a step without such verdicts; it takes the step and the run. "": a
	// replay can get them itself.
	missing() string
}

// verdicts lists the stages that get verdicts, in their order.
func (d *Deps) verdicts() []verdict {
	return []verdict{GradeAnswers{d}, JudgeAnswers{d}, CallFunction{d}}
}

// questions are the answers of a shard that verdicts are asked for.
type questions struct {
	api.VerdictInput
	recipe       *recipes.Recipe
	trajectories []schema.TrajectoryRow
	problems     map[string]string // by group, if the questions hold them
}

// answer runs a stage that gets verdicts.
func (d *Deps) answer(ctx context.Context, e *Env, v verdict, in api.VerdictInput) (api.Verdicts, error) {
	out := api.Verdicts{}
	s := spec{scope: in.Scope, stage: v.stage(), turn: -1, shard: in.Shard, inputs: []schema.Ref{in.Trajectories}}
	if v.problems() {
		s.inputs = append(s.inputs, in.Prompts)
	}
	err := execute(ctx, d, e, s, &out, &out.Done, func(ctx context.Context, w *draft) (err error) {
		q := &questions{VerdictInput: in}
		if q.recipe, err = d.Recipes.recipe(ctx, in.Scope); err != nil {
			return err
		}
		if q.trajectories, err = read[schema.TrajectoryRow](ctx, d.records, in.Trajectories); err != nil {
			return err
		}
		if v.problems() {
			if q.problems, err = d.problems(ctx, in.Prompts); err != nil {
				return err
			}
		}
		if err := v.ask(ctx, w, q, &out); err != nil {
			return err
		}
		w.timing.Rows = int64(out.Asked)
		return nil
	})
	return out, err
}
