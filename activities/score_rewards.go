package activities

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// ScoreRewards grades one shard's trajectories (rStar2's outcome reward, spec E2).
type ScoreRewards struct{ *Deps }

// Execute commits one reward per trajectory that is whole. A wrong answer is a verdict, never an
// error. A trajectory that was excluded, or that cannot be graded, has no reward: the stage commits
// its row of the selection instead.
func (a ScoreRewards) Execute(ctx context.Context, in wire.ScoreInput) (wire.Scored, error) {
	out := wire.Scored{}
	s := spec{scope: in.Scope, stage: wire.StageReward, turn: -1, shard: in.Shard, inputs: []schema.Ref{in.Trajectories}}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		trajectories, err := read[schema.TrajectoryRow](ctx, a.Deps, in.Trajectories)
		if err != nil {
			return err
		}
		for _, t := range trajectories {
			if recipe.Reward.Name == recipes.Reference && (t.SourceReward == nil || t.Reference == nil) {
				return refuse(wire.FailCorrupt, "trajectory %s has no reward of its source", t.TrajectoryID)
			}
		}
		grade := func(t schema.TrajectoryRow) schema.RewardRow { return score(t, recipe.Reward) }
		rows, excluded, err := scoreEach(trajectories, grade, func(t schema.TrajectoryRow, r schema.RewardRow) {
			count(&out, t, r)
			w.progress.set(out.Trajectories, len(trajectories))
		})
		if err != nil {
			return err
		}
		out.Excluded = len(excluded)
		if recipe.Resample.Dynamic != nil {
			out.Informative = informative(rows)
		}
		w.timing.Rows, w.timing.Tokens = int64(len(rows)), out.Tokens
		if err := put(ctx, w, rows); err != nil || len(excluded) == 0 {
			return err
		}
		return put(ctx, w, excluded)
	})
	return out, err
}

// scoreEach scores the trajectories that are whole and tells done of each. One whose scoring panics,
// or gives a row that is none, is excluded; if every one of several does, the reward is broken and
// that is an error.
func scoreEach(trajectories []schema.TrajectoryRow, score func(schema.TrajectoryRow) schema.RewardRow,
	done func(schema.TrajectoryRow, schema.RewardRow)) (rows []schema.RewardRow, excluded []schema.SelectionRow, err error) {
	var failures []error
	for _, t := range trajectories {
		if t.Excluded != nil {
			excluded = append(excluded, excludedRow(t.GroupID, t.TrajectoryID, *t.Excluded))
			continue
		}
		var row schema.RewardRow
		failure := rescue.Do(func() error {
			row = score(t)
			return row.Validate()
		})
		if failure != nil {
			slog.Warn("exclude a trajectory: it cannot be scored", "trajectory", t.TrajectoryID, "error", failure, "stack", rescue.Stack(failure))
			failures = append(failures, failure)
			excluded = append(excluded, excludedRow(t.GroupID, t.TrajectoryID, rollout.Reason("reward", failure.Error())))
			continue
		}
		rows = append(rows, row)
		done(t, row)
	}
	if len(rows) == 0 && len(failures) > 1 {
		return nil, nil, fmt.Errorf("score %d trajectories: each of them fails: %w", len(failures), failures[0])
	}
	return rows, excluded, nil
}

// score grades one trajectory and works out RoC's penalties.
func score(t schema.TrajectoryRow, method recipes.Reward) schema.RewardRow {
	outcome := grade(t, method)
	penalties := resample.StructuredPenalties(int(t.ToolCalls), int(t.ToolErrors), int(t.AnswerTags), int(t.Turns))
	return schema.RewardRow{
		GroupID: t.GroupID, TrajectoryID: t.TrajectoryID, Level: t.Level,
		Reward: outcome.Reward, Outcome: outcome.Reward, Success: outcome.Verdict.Correct(),
		Turns: t.Turns, ToolCalls: t.ToolCalls, ToolErrors: t.ToolErrors, AnswerTags: t.AnswerTags,
		ErrorPenalty: penalties.Error, FormatPenalty: penalties.Format,
		Verdict: string(outcome.Verdict), Reference: t.Reference,
	}
}

// grade reads the answer out of the text, or takes the one that an importer has extracted, or the
// reward itself.
func grade(t schema.TrajectoryRow, method recipes.Reward) reward.Outcome {
	if method.Name == recipes.Reference {
		verdict := reward.ReferenceFailure
		if *t.Reference {
			verdict = reward.ReferenceSuccess
		}
		return reward.Outcome{Reward: *t.SourceReward, Verdict: verdict, Answer: t.FinalAnswer}
	}
	if method.Name == recipes.MathAnswer {
		if !t.HasAnswer {
			return reward.Outcome{Verdict: reward.NoAnswer}
		}
		verdict := reward.Compare(t.FinalAnswer, t.Gold, reward.Options{})
		return reward.Outcome{Reward: verdict.Score(), Verdict: verdict, Answer: t.FinalAnswer}
	}
	return reward.Grade(t.Text, t.Gold, reward.Options{Fallback: method.Fallback, Literal: true})
}

func count(out *wire.Scored, t schema.TrajectoryRow, r schema.RewardRow) {
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
