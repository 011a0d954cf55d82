package activities

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/internal/replaying"
	"github.com/ropewalk/ropewalk/internal/selection"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// ScoreRewards grades one shard's trajectories by the recipe's reward.
type ScoreRewards struct{ *Deps }

// Execute commits one reward for each trajectory that is not excluded. A wrong answer is a verdict, never an error. A
// trajectory that was excluded, or that cannot be graded, has no reward: the stage commits its row of the selection
// instead.
func (a ScoreRewards) Execute(ctx context.Context, in api.ScoreInput) (api.Scored, error) {
	out := api.Scored{}
	s := spec{scope: in.Scope, stage: api.StageReward, turn: -1, shard: in.Shard,
		inputs: []schema.Ref{in.Trajectories}}
	for _, verdicts := range []schema.Ref{in.Gradings, in.Judgements, in.Results} {
		if verdicts != (schema.Ref{}) {
			s.inputs = append(s.inputs, verdicts)
		}
	}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		trajectories, err := read[schema.TrajectoryRow](ctx, a.records, in.Trajectories)
		if err != nil {
			return err
		}
		g, err := a.grader(ctx, w, recipe, in.Step, in.Trajectories)
		if err != nil {
			return err
		}
		if err := g.Check(trajectories); err != nil {
			return err
		}
		if err := a.settle(ctx, g, in, trajectories); err != nil {
			return err
		}
		if err := a.settleJudgements(ctx, g, in, trajectories); err != nil {
			return err
		}
		if out.Edited, err = a.settleResults(ctx, g, in, trajectories); err != nil {
			return err
		}
		done := func(t schema.TrajectoryRow, r schema.RewardRow) {
			count(&out, t, r)
			w.progress.set(out.Trajectories, len(trajectories))
		}
		rows, excluded, err := grading.ScoreEach(trajectories, g.Score, done)
		if err != nil {
			return err
		}
		out.Excluded = len(excluded)
		if recipe.Resample.Dynamic() != nil {
			out.Informative = selection.Informative(rows)
		}
		w.timing.Rows, w.timing.Tokens = int64(len(rows)), out.Tokens
		if err := put(ctx, w, rows); err != nil || len(excluded) == 0 {
			return err
		}
		return put(ctx, w, excluded)
	})
	return out, err
}

// settle gives the grader the committed verdicts, if its reward reads them.
func (a ScoreRewards) settle(ctx context.Context, g *grading.Grader, in api.ScoreInput,
	trajectories []schema.TrajectoryRow) error {
	if !g.Reads() {
		return nil
	}
	if in.Gradings == (schema.Ref{}) {
		return refuse(api.FailRefused,
			"reward: shard %d has no gradings, which the stage grade commits before the reward is computed",
			in.Shard)
	}
	rows, err := read[schema.GradingRow](ctx, a.records, in.Gradings)
	if err != nil {
		return err
	}
	return g.Settle(rows, trajectories)
}

// settleJudgements gives the grader the committed verdicts of the judge, if its reward reads them.
func (a ScoreRewards) settleJudgements(ctx context.Context, g *grading.Grader, in api.ScoreInput,
	trajectories []schema.TrajectoryRow) error {
	if !g.Judged() {
		return nil
	}
	if in.Judgements == (schema.Ref{}) {
		return refuse(api.FailRefused, "reward: shard %d has no judgements, which the stage judge commits before the "+
			"reward is computed", in.Shard)
	}
	rows, err := read[schema.JudgementRow](ctx, a.records, in.Judgements)
	if err != nil {
		return err
	}
	return g.SettleJudgements(rows, trajectories)
}

// settleResults gives the grader the committed results of the user's function, if its reward is one.
func (a ScoreRewards) settleResults(ctx context.Context, g *grading.Grader, in api.ScoreInput,
	trajectories []schema.TrajectoryRow) (edited string, err error) {
	if !g.Called() {
		return "", nil
	}
	if in.Results == (schema.Ref{}) {
		return "", refuse(api.FailRefused, "reward: shard %d has no function scores, which the stage function commits "+
			"before the reward is computed", in.Shard)
	}
	rows, err := read[schema.FunctionScoreRow](ctx, a.records, in.Results)
	if err != nil {
		return "", err
	}
	m, err := a.Record.Read(ctx, in.Results)
	if err != nil {
		return "", err
	}
	var called api.Called
	if err := json.Unmarshal([]byte(m.Note[schema.NoteResult]), &called); err != nil {
		return "", fmt.Errorf("%w: result in %s: %w", commit.ErrDamaged, in.Results.Key, err)
	}
	return called.Edited, g.SettleResults(rows, trajectories)
}

func count(out *api.Scored, t schema.TrajectoryRow, r schema.RewardRow) {
	out.Trajectories++
	out.RewardSum += r.Reward
	out.ToolCalls += int(t.ToolCalls)
	out.Tokens += int64(t.Tokens)
	if r.Success {
		out.Successes++
	}
	if r.Reward > 0 {
		out.PositiveCalls += int(t.ToolCalls)
		out.PositiveErrors += int(t.ToolErrors)
	}
	if r.Reference != nil {
		out.Compared++
		if *r.Reference == r.Success {
			out.Agreed++
		}
	}
}

func (a ScoreRewards) again(
	ctx context.Context, scope api.Scope, before schema.Manifest, inputs []schema.Ref,
) (schema.Ref, error) {
	if len(inputs) == 0 || !readsOnly(inputs[1:], api.StageGrade, api.StageJudge, api.StageFunction, api.StageSandbox) {
		return schema.Ref{}, errOtherInputs
	}
	recipe, err := a.recipe(ctx, scope)
	if err != nil {
		return schema.Ref{}, err
	}
	if err := grading.FromRecord(recipe.Reward.Name); err != nil {
		return schema.Ref{}, err
	}
	in := api.ScoreInput{Scope: scope, Shard: before.Shard, Trajectories: inputs[0]}
	for _, ref := range inputs[1:] { // the activity finds transitions itself
		switch {
		case isOfStage(ref, api.StageGrade):
			in.Gradings = ref
		case isOfStage(ref, api.StageJudge):
			in.Judgements = ref
		case isOfStage(ref, api.StageFunction):
			in.Results = ref
		}
	}
	out, err := a.Execute(ctx, in)
	return out.Manifest, err
}

// sources are the step's trajectories. Whether the reward also reads gradings, judgements or function scores depends on
// the replay's recipe, which is not known yet: see findGradings, findJudgements and findResults.
func (a ScoreRewards) sources(ctx context.Context, p *replaying.Plan, out *api.ReplayPrepared) error {
	return PrepareReplay(a).findTrajectories(ctx, p, out)
}
