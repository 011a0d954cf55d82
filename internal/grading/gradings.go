package grading

import (
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/schema"
)

// Questions returns the rows of the trajectories with an open question, without verdicts, and the distinct pairs among
// them in the order in which they occur.
func (g *Grader) Questions(trajectories []schema.TrajectoryRow) (rows []schema.GradingRow, pairs []symbolic.Pair) {
	asked := map[symbolic.Pair]bool{}
	for _, t := range trajectories {
		q, open := g.question(t)
		if !open {
			continue
		}
		rows = append(rows, schema.GradingRow{GroupID: t.GroupID, TrajectoryID: t.TrajectoryID, Answer: q.Answer,
			Gold: q.Gold})
		if p := symbolic.Pair(q); !asked[p] {
			asked[p] = true
			pairs = append(pairs, p)
		}
	}
	return rows, pairs
}

// question is the open question of a trajectory's comparison, if there is one.
func (g *Grader) question(t schema.TrajectoryRow) (reward.Question, bool) {
	if t.Excluded != nil {
		return reward.Question{}, false
	}
	o := g.compared(t)
	if g.Tested() {
		return reward.AskTests(o, t.Gold)
	}
	if o.Verdict != reward.Wrong {
		return reward.Question{}, false
	}
	return reward.Ask(o.Answer, t.Gold, g.options())
}

// Fill puts each pair's verdict into the rows that ask about it. The rows of a pair without a verdict get the reason,
// which excludes their trajectories.
func Fill(rows []schema.GradingRow, graded map[symbolic.Pair]symbolic.Graded) {
	for i := range rows {
		r := &rows[i]
		g := graded[symbolic.Pair{Answer: r.Answer, Gold: r.Gold}]
		if g.Broken != nil {
			r.Excluded = new(rollout.Reason("grading", g.Broken.Error()))
			continue
		}
		r.Verdict, r.Grader = string(g.Verdict), g.Grader
	}
}

// Reads reports whether the reward reads gradings.
func (g *Grader) Reads() bool { return g.reward.Graded() }

// Tested reports whether gradings say that programs pass their tests, rather than that expressions are equal.
func (g *Grader) Tested() bool { return g.reward.Declaration().Tested }

// asksOther explains why undamaged gradings may not fit.
const asksOther = "a reward that takes other answers than the step's needs gradings of its own, which a replay " +
	"cannot make"

// Settle takes over the committed verdicts on the questions that the grader's comparison leaves open, and excludes
// trajectories whose call gave none. Each open question must have its row, with the same answer and gold. Settle
// ignores rows that the reward, with its current settings, does not ask about.
func (g *Grader) Settle(rows []schema.GradingRow, trajectories []schema.TrajectoryRow) error {
	graded := make(map[string]schema.GradingRow, len(rows))
	for _, r := range rows {
		graded[r.TrajectoryID] = r
	}
	g.equal = map[string]bool{}
	for i := range trajectories {
		t := &trajectories[i]
		r, found := graded[t.TrajectoryID]
		delete(graded, t.TrajectoryID)
		q, open := g.question(*t)
		switch {
		case !open:
		case !found:
			return refusal.Unusablef("trajectory %s has no row in gradings, and its answer %q is to be compared with "+
				"%q: %s", t.TrajectoryID, q.Answer, q.Gold, asksOther)
		case r.Answer != q.Answer || r.Gold != q.Gold:
			return refusal.Unusablef("trajectory %s: its row in gradings compares %q with %q, and its answer %q is to "+
				"be compared with %q: %s", t.TrajectoryID, r.Answer, r.Gold, q.Answer, q.Gold, asksOther)
		case r.Excluded != nil:
			t.Excluded = r.Excluded
		default:
			g.equal[t.TrajectoryID] = r.Verdict == schema.GradingEqual
		}
	}
	for _, r := range rows {
		if _, stray := graded[r.TrajectoryID]; stray {
			return refusal.Corruptf("gradings hold a row of trajectory %s, which the shard's trajectories do not have",
				r.TrajectoryID)
		}
	}
	return nil
}
