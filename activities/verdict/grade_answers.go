package verdict

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/ropewalk/ropewalk/activities/early"
	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/schema"
)

// GradeAnswers asks the sandbox about the answers of one shard. Its sympy compares answers that differ from their golds
// as strings, values and lists; a program is run with its tests. The reward reads the committed verdicts, so the reward
// stays a function of the record.
type GradeAnswers struct{ *stage.Worker }

// Execute commits one row for each trajectory with an open question; equal pairs share one call. An answer that is
// not an expression, or that exceeds the limits, is a verdict. A call without a verdict (a broken sandbox, a killed
// process) is breakage and excludes its trajectories.
func (a GradeAnswers) Execute(ctx context.Context, e *stage.Env, in api.VerdictInput) (api.Verdicts, error) {
	return Answer(ctx, a.Worker, e, a, in)
}

// Stage implements Source.
func (GradeAnswers) Stage() string { return schema.StageGrade }

// Asked implements Source.
func (GradeAnswers) Asked(r *recipes.Recipe) bool { return r.Reward.Graded() }

// NeedsProblems implements Source.
func (GradeAnswers) NeedsProblems() bool { return false }

// Ask implements Source.
func (a GradeAnswers) Ask(ctx context.Context, w *stage.Draft, q *Questions, out *api.Verdicts) error {
	if err := a.Execution.Isolates(w.Recipe); err != nil {
		return err
	}
	g := grading.New(w.Recipe, q.Step)
	rows, pairs := g.Questions(q.Answers)
	graded, err := gradePairs(ctx, w, g.Tested(), pairs)
	if err != nil {
		return err
	}
	grading.Fill(rows, graded)
	out.Asked, out.Questions = len(rows), len(pairs)
	for _, r := range rows {
		switch {
		case r.Excluded != nil:
			out.Excluded++
		case r.Verdict == schema.GradingEqual:
			out.Right++
		}
	}
	return stage.Put(ctx, w, rows)
}

// Settle implements Source.
func (a GradeAnswers) Settle(ctx context.Context, g *grading.Grader, made schema.Ref,
	trajectories []schema.TrajectoryRow) error {
	rows, err := record.Read[schema.GradingRow](ctx, a.Records, made)
	if err != nil {
		return err
	}
	return g.Settle(rows, trajectories)
}

// Missing implements Source.
func (GradeAnswers) Missing() string {
	return "reward.symbolic: step %d of run %s has committed no gradings, which a replay cannot make, for it needs " +
		"the sandbox; run the recipe again, or import the file again, with --set reward.symbolic=true"
}

// gradePairs grades the pairs, one batch at a time, so that heartbeats show progress. What was graded early is not
// graded again. tested means that the answers are programs.
func gradePairs(ctx context.Context, w *stage.Draft, tested bool,
	pairs []symbolic.Pair) (map[symbolic.Pair]symbolic.Graded, error) {
	run, most := early.GradeBy(w.Recipe, w.Worker.Execution.Sandbox, tested)
	out := make(map[symbolic.Pair]symbolic.Graded, len(pairs))
	for batch := range slices.Chunk(pairs, most) {
		early, began, err := w.Env.Verdicts.Graded(ctx, batch)
		if err != nil {
			return nil, err
		}
		w.Since(began)
		left := leftOf(batch, early)
		var graded []symbolic.Graded
		if len(left) > 0 {
			graded, err = run(ctx, left)
		}
		if errors.Is(err, symbolic.ErrNoSympy) { // this worker is not the one that prepared the run
			return nil, badinput.Errorf("reward.symbolic: %v", err)
		}
		if err != nil {
			return nil, err
		}
		for i, g := range graded {
			out[left[i]] = g
			w.Timing.CPU += g.CPU.Seconds()
		}
		for _, p := range batch {
			if g, ok := early[p]; ok {
				out[p] = g
				w.Timing.CPU += g.CPU.Seconds()
			}
		}
		w.Progress.Set(len(out), len(pairs))
	}
	return out, nil
}

// leftOf returns the pairs of a batch that have no grade yet. If any others have, the one that took least is graded
// again with them: whether a sandbox or a pair is to blame for a call that breaks depends on whether others of the
// batch get grades.
func leftOf(batch []symbolic.Pair, graded map[symbolic.Pair]symbolic.Graded) []symbolic.Pair {
	var left, rest []symbolic.Pair
	for _, p := range batch {
		if _, ok := graded[p]; ok {
			rest = append(rest, p)
		} else {
			left = append(left, p)
		}
	}
	if len(left) > 0 && len(rest) > 0 {
		left = append(left, slices.MinFunc(rest, func(a, b symbolic.Pair) int {
			return cmp.Compare(graded[a].CPU, graded[b].CPU)
		}))
	}
	return left
}
