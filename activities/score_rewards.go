package activities

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// ScoreRewards grades one shard's trajectories by the recipe's reward.
type ScoreRewards struct{ *Deps }

// Execute commits one reward per trajectory that is whole. A wrong answer is a verdict, never an
// error. A trajectory that was excluded, or that cannot be graded, has no reward: the stage commits
// its row of the selection instead.
func (a ScoreRewards) Execute(ctx context.Context, in wire.ScoreInput) (wire.Scored, error) {
	out := wire.Scored{}
	s := spec{scope: in.Scope, stage: wire.StageReward, turn: -1, shard: in.Shard, inputs: []schema.Ref{in.Trajectories}}
	if in.Gradings != (schema.Ref{}) {
		s.inputs = append(s.inputs, in.Gradings)
	}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		trajectories, err := read[schema.TrajectoryRow](ctx, a.Deps, in.Trajectories)
		if err != nil {
			return err
		}
		g := newGrader(recipe, in.Step)
		for _, t := range trajectories {
			if err := g.readable(t); err != nil {
				return err
			}
		}
		if err := g.settle(ctx, a.Deps, in, trajectories); err != nil {
			return err
		}
		rows, excluded, err := scoreEach(trajectories, g.score, func(t schema.TrajectoryRow, r schema.RewardRow) {
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
func scoreEach(trajectories []schema.TrajectoryRow, score func(schema.TrajectoryRow) (schema.RewardRow, error),
	done func(schema.TrajectoryRow, schema.RewardRow)) (rows []schema.RewardRow, excluded []schema.SelectionRow, err error) {
	var failures []error
	for _, t := range trajectories {
		if t.Excluded != nil {
			excluded = append(excluded, excludedRow(t.GroupID, t.TrajectoryID, *t.Excluded))
			continue
		}
		var row schema.RewardRow
		failure := rescue.Do(func() (err error) {
			if row, err = score(t); err != nil {
				return err
			}
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
func (g grader) score(t schema.TrajectoryRow) (schema.RewardRow, error) {
	got, err := g.grade(t)
	penalties := resample.StructuredPenalties(int(t.ToolCalls), int(t.ToolErrors), int(t.AnswerTags), int(t.Turns))
	return schema.RewardRow{
		GroupID: t.GroupID, TrajectoryID: t.TrajectoryID, Level: t.Level,
		Reward: got.reward, Outcome: got.outcome.Reward, Success: got.outcome.Verdict.Correct(),
		Turns: t.Turns, ToolCalls: t.ToolCalls, ToolErrors: t.ToolErrors, AnswerTags: t.AnswerTags,
		ErrorPenalty: penalties.Error, FormatPenalty: penalties.Format,
		Verdict: string(got.outcome.Verdict), Reference: t.Reference,
	}, err
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
