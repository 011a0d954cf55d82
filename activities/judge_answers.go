package activities

import (
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/internal/judge"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/schema"
)

// JudgeAnswers asks the recipe's judge about the answers of one shard that the reward depends on. The reward reads the
// committed verdicts, so replays need no judge.
type JudgeAnswers struct{ *Deps }

// Execute commits one row for each trajectory that the judge was asked about; equal prompts share one request. A
// refusal, or a reply that cannot be read, excludes its trajectories. If the judge takes no queries at all, the stage
// fails and can be tried again.
func (a JudgeAnswers) Execute(ctx context.Context, in api.JudgeInput) (api.Judged, error) {
	out := api.Judged{}
	s := spec{scope: in.Scope, stage: api.StageJudge, turn: -1, shard: in.Shard,
		inputs: []schema.Ref{in.Trajectories, in.Prompts}}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		trajectories, err := read[schema.TrajectoryRow](ctx, a.records, in.Trajectories)
		if err != nil {
			return err
		}
		problems, err := a.problems(ctx, in.Prompts)
		if err != nil {
			return err
		}
		g := grading.New(recipe, in.Step)
		if err := g.Check(trajectories); err != nil { // a reward that lacks facts would ask about other answers
			return err
		}
		rows, queries, err := g.Queries(trajectories, problems)
		if err != nil {
			return err
		}
		if err := a.judged(ctx, w, recipe, in.Run, rows, queries); err != nil {
			return err
		}
		out.Count(rows)
		w.timing.Rows = int64(len(rows))
		return put(ctx, w, rows)
	})
	return out, err
}

// judged asks the judge and fills the rows.
func (d *Deps) judged(ctx context.Context, w *draft, recipe *recipes.Recipe, run string, rows []schema.JudgementRow,
	queries []reward.Query) error {
	if len(queries) == 0 {
		return nil
	}
	if recipe.Judge == nil {
		return refuse(api.FailBadInput, "judge: is required: the reward or the evaluation of recipe %s asks a judge",
			recipe.Name)
	}
	j := verifierOf(ctx).asks()
	if j == nil {
		var err error
		if j, err = judge.Open(*recipe.Judge, d.judgements, run); err != nil {
			return classifyJudge(err)
		}
		defer j.Close()
	}
	answers, err := j.Ask(ctx, queries, func(n int) { w.progress.set(n, len(queries)) })
	if err != nil {
		return classifyJudge(err)
	}
	grading.FillJudgements(rows, answers, *recipe.Judge)
	return nil
}

// classifyJudge gives the errors of a judge their kinds. One that is away may come back.
func classifyJudge(err error) error {
	switch {
	case errors.Is(err, judge.ErrSettings):
		return refuse(api.FailBadInput, "%v", err)
	case errors.Is(err, judge.ErrAway):
		return temporal.NewApplicationError(err.Error(), api.FailJudge)
	}
	return err
}
