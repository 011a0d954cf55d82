package activities

import (
	"context"
	"errors"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/schema"
)

// GradeAnswers has the sandbox's sympy compare the answers of one shard that strings, values and lists find
// different from their golds. The reward reads its verdicts, so that it stays a function of the record.
type GradeAnswers struct{ *Deps }

// Execute commits one row per trajectory that is asked about; equal pairs are one call. An answer that is no
// expression is a verdict; a call that gives none (a time-out, a sandbox that breaks) is breakage, and
// excludes its trajectories.
func (a GradeAnswers) Execute(ctx context.Context, in wire.GradeInput) (wire.Graded, error) {
	out := wire.Graded{}
	s := spec{scope: in.Scope, stage: wire.StageGrade, turn: -1, shard: in.Shard, inputs: []schema.Ref{in.Trajectories}}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.isolatedRecipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		trajectories, err := read[schema.TrajectoryRow](ctx, a.Deps, in.Trajectories)
		if err != nil {
			return err
		}
		rows, pairs := newGrader(recipe, in.Step).questions(trajectories)
		graded, err := a.compare(ctx, w, pairs)
		if err != nil {
			return err
		}
		for i := range rows {
			fillGrading(&rows[i], graded)
		}
		out.Asked, out.Pairs = len(rows), len(pairs)
		for _, r := range rows {
			switch {
			case r.Excluded != nil:
				out.Excluded++
			case r.Verdict == schema.GradingEqual:
				out.Equal++
			}
		}
		w.timing.Rows = int64(len(rows))
		return put(ctx, w, rows)
	})
	return out, err
}

// questions are the rows of the trajectories to ask about, without verdicts, and the different pairs among
// them in the order in which they come up.
func (g grader) questions(trajectories []schema.TrajectoryRow) (rows []schema.GradingRow, pairs []symbolic.Pair) {
	asked := map[symbolic.Pair]bool{}
	for _, t := range trajectories {
		q, open := g.question(t)
		if !open {
			continue
		}
		rows = append(rows, schema.GradingRow{GroupID: t.GroupID, TrajectoryID: t.TrajectoryID, Answer: q.Answer, Gold: q.Gold})
		if p := symbolic.Pair(q); !asked[p] {
			asked[p] = true
			pairs = append(pairs, p)
		}
	}
	return rows, pairs
}

// question is what a trajectory's comparison leaves open.
func (g grader) question(t schema.TrajectoryRow) (reward.Question, bool) {
	if t.Excluded != nil {
		return reward.Question{}, false
	}
	o := g.compared(t)
	if o.Verdict != reward.Wrong {
		return reward.Question{}, false
	}
	return reward.Ask(o.Answer, t.Gold, g.options())
}

// compare grades the pairs, a batch at a time, so that a heartbeat can show progress.
func (a GradeAnswers) compare(ctx context.Context, w *draft, pairs []symbolic.Pair) (map[symbolic.Pair]symbolic.Graded, error) {
	out := make(map[symbolic.Pair]symbolic.Graded, len(pairs))
	for start := 0; start < len(pairs); start += batchCalls {
		batch := pairs[start:min(start+batchCalls, len(pairs))]
		graded, err := symbolic.Run(ctx, a.Sandbox, batch)
		if errors.Is(err, symbolic.ErrNoSympy) { // another worker's than the one that prepared the run
			return nil, refuse(wire.FailBadInput, "reward.symbolic: %v", err)
		}
		if err != nil {
			return nil, err
		}
		for i, g := range graded {
			out[batch[i]] = g
			w.timing.CPU += g.CPU.Seconds()
		}
		w.progress.set(start+len(batch), len(pairs))
	}
	return out, nil
}

// fillGrading puts a pair's verdict, or why there is none, into a row that asks about it.
func fillGrading(r *schema.GradingRow, graded map[symbolic.Pair]symbolic.Graded) {
	g := graded[symbolic.Pair{Answer: r.Answer, Gold: r.Gold}]
	if g.Broken != nil {
		r.Excluded = new(rollout.Reason("grading", g.Broken.Error()))
		return
	}
	r.Verdict, r.Grader = string(g.Verdict), g.Grader
}
