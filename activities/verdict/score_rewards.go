package verdict

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/selection"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// ScoreRewards grades one shard's trajectories by the recipe's reward.
type ScoreRewards struct{ *stage.Worker }

// Execute commits one reward for each trajectory that is not excluded. A wrong answer is a verdict, never an error. A
// trajectory that was excluded, or that cannot be graded, has no reward: the stage commits its row of the selection
// instead.
func (a ScoreRewards) Execute(ctx context.Context, e *stage.Env, in api.ScoreInput) (out api.Scored, err error) {
	s := stage.Spec{Scope: in.Scope, Stage: schema.StageReward, Turn: -1, Shard: in.Shard,
		Inputs: append([]schema.Ref{in.Trajectories}, in.Verdicts...)}
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) error {
		trajectories, err := record.Read[schema.TrajectoryRow](ctx, a.Records, in.Trajectories)
		if err != nil {
			return err
		}
		g, err := grader(ctx, w, in.Step, in.Trajectories)
		if err != nil {
			return err
		}
		if err := g.Check(trajectories); err != nil {
			return err
		}
		if out.Edited, err = a.settle(ctx, g, in, w.Recipe, trajectories); err != nil {
			return err
		}
		done := func(t schema.TrajectoryRow, r schema.RewardRow) {
			count(&out, t, r)
			w.Progress.Set(out.Trajectories, len(trajectories))
		}
		rows, excluded, err := grading.ScoreEach(trajectories, g.Score, done)
		if err != nil {
			return err
		}
		out.Excluded = len(excluded)
		if w.Recipe.Resample.Dynamic() != nil {
			out.Informative = selection.Informative(rows)
		}
		w.Timing.Rows, w.Timing.Tokens = int64(len(rows)), out.Tokens
		if err := stage.Put(ctx, w, rows); err != nil || len(excluded) == 0 {
			return err
		}
		return stage.Put(ctx, w, excluded)
	})
	return out, err
}

// settle gives the grader the committed verdicts that the recipe's reward reads. It returns the files of the user's
// code that were edited before the verdicts came.
func (a ScoreRewards) settle(ctx context.Context, g *grading.Grader, in api.ScoreInput, recipe *recipes.Recipe,
	trajectories []schema.TrajectoryRow) (edited string, err error) {
	for _, source := range All {
		v := source(a.Worker)
		if !v.Asked(recipe) {
			continue
		}
		i := slices.IndexFunc(in.Verdicts, func(ref schema.Ref) bool { return record.IsOfStage(ref, v.Stage()) })
		if i < 0 {
			declared, _ := stages.Of(v.Stage())
			return "", refusal.Unusablef("reward: shard %d has no %s, which the stage %s commits before "+
				"the reward is computed", in.Shard, declared.Writes[0], v.Stage())
		}
		m, err := a.Record.Read(ctx, in.Verdicts[i])
		if err != nil {
			return "", err
		}
		var made api.Verdicts
		if err := json.Unmarshal([]byte(m.Note[schema.NoteResult]), &made); err != nil {
			return "", fmt.Errorf("%w: result in %s: %w", commit.ErrDamaged, in.Verdicts[i].Key, err)
		}
		edited = cmp.Or(made.Edited, edited)
		if err := v.Settle(ctx, g, in.Verdicts[i], trajectories); err != nil {
			return "", err
		}
	}
	return edited, nil
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

// ErrOtherInputs: a manifest names inputs that its stage does not read.
var ErrOtherInputs = errors.New("the inputs are not what the stage reads")

// Redo runs the stage on the inputs that the manifest of a shard names, as a check of a replay wants it.
func (a ScoreRewards) Redo(ctx context.Context, scope api.Scope, before schema.Manifest) (schema.Ref, error) {
	inputs := before.Inputs[1:]
	if len(inputs) == 0 || !record.ReadsOnly(inputs[1:], stages.ReadBy(schema.StageReward)[1:]...) {
		return schema.Ref{}, ErrOtherInputs
	}
	recipe, err := a.Recipes.Recipe(ctx, scope)
	if err != nil {
		return schema.Ref{}, err
	}
	if err := grading.FromRecord(recipe.Reward.Name); err != nil {
		return schema.Ref{}, err
	}
	in := api.ScoreInput{Scope: scope, Shard: before.Shard, Trajectories: inputs[0]}
	for _, ref := range inputs[1:] {
		if !record.IsOfStage(ref, schema.StageSandbox) { // the activity finds transitions itself
			in.Verdicts = append(in.Verdicts, ref)
		}
	}
	out, err := a.Execute(ctx, &stage.Env{}, in)
	return out.Manifest, err
}
