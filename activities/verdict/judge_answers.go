package verdict

import (
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/internal/judge"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/schema"
)

// JudgeAnswers asks the recipe's judge about the answers of one shard that the reward depends on. The reward reads the
// committed verdicts, so replays need no judge.
type JudgeAnswers struct{ *stage.Worker }

// Execute commits one row for each trajectory that the judge was asked about; equal prompts share one request. A
// refusal, or a reply that cannot be read, excludes its trajectories. If the judge takes no queries at all, the stage
// fails and can be tried again.
func (a JudgeAnswers) Execute(ctx context.Context, e *stage.Env, in api.VerdictInput) (api.Verdicts, error) {
	return Answer(ctx, a.Worker, e, a, in)
}

// Stage implements Source.
func (JudgeAnswers) Stage() string { return schema.StageJudge }

// Asked implements Source.
func (JudgeAnswers) Asked(r *recipes.Recipe) bool { return r.Reward.Judged() }

// NeedsProblems implements Source.
func (JudgeAnswers) NeedsProblems() bool { return true }

// Ask implements Source.
func (a JudgeAnswers) Ask(ctx context.Context, w *stage.Draft, q *Questions, out *api.Verdicts) error {
	g := grading.New(w.Recipe, q.Step)
	if err := g.Check(q.Answers); err != nil { // a reward that lacks facts would ask about other answers
		return err
	}
	rows, queries, err := g.Queries(q.Answers, q.Problems)
	if err != nil {
		return err
	}
	if err := Judged(ctx, w, q.Run, rows, queries); err != nil {
		return err
	}
	prompts := map[string]bool{}
	for _, r := range rows {
		prompts[r.PromptDigest] = true
		switch {
		case r.Excluded != nil:
			out.Excluded++
		case r.Verdict == schema.JudgementMatch:
			out.Right++
		}
	}
	out.Asked, out.Questions = len(rows), len(prompts)
	return stage.Put(ctx, w, rows)
}

// Settle implements Source.
func (a JudgeAnswers) Settle(ctx context.Context, g *grading.Grader, made schema.Ref,
	trajectories []schema.TrajectoryRow) error {
	rows, err := record.Read[schema.JudgementRow](ctx, a.Records, made)
	if err != nil {
		return err
	}
	return g.SettleJudgements(rows, trajectories)
}

// Missing implements Source: a replay asks no judge.
func (JudgeAnswers) Missing() string {
	return "reward: step %d of run %s has committed no judgements, which a replay cannot make, for it asks no judge; " +
		"run the recipe again with --set reward.judge=server and a judge section"
}

// Judged asks the judge and fills the rows.
func Judged(ctx context.Context, w *stage.Draft, run string, rows []schema.JudgementRow, queries []reward.Query) error {
	if len(queries) == 0 {
		return nil
	}
	if w.Recipe.Judge == nil {
		return badinput.Errorf("judge: is required: the reward or the evaluation of recipe %s asks a "+
			"judge", w.Recipe.Name)
	}
	j := w.Env.Verdicts.AskedJudge()
	if j == nil {
		var err error
		if j, err = judge.Open(*w.Recipe.Judge, w.Worker.Execution.Judgements, run); err != nil {
			return classifyJudge(err)
		}
		defer j.Close()
	}
	answers, err := j.Ask(ctx, queries, func(n int) { w.Progress.Set(n, len(queries)) })
	if err != nil {
		return classifyJudge(err)
	}
	grading.FillJudgements(rows, answers, *w.Recipe.Judge)
	return nil
}

// classifyJudge gives the errors of a judge their kinds. One that is away may come back.
func classifyJudge(err error) error {
	switch {
	case errors.Is(err, judge.ErrSettings):
		return badinput.Errorf("%v", err)
	case errors.Is(err, judge.ErrAway):
		return temporal.NewApplicationError(err.Error(), api.FailJudge)
	}
	return err
}
