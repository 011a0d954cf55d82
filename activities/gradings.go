package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/schema"
)

// settle gives the grader the committed verdicts on what its comparison leaves open, and excludes the
// trajectories whose call gave none. Each open question must have its row, of the same answer and gold: what
// is missing, or was asked otherwise, is refused by the trajectory's name. Rows that the reward, as it is set
// now, has no question for are left alone.
func (g *grader) settle(ctx context.Context, d *Deps, in wire.ScoreInput, trajectories []schema.TrajectoryRow) error {
	if !g.reward.Symbolic {
		return nil
	}
	if in.Gradings == (schema.Ref{}) {
		return refuse(wire.FailRefused, "reward.symbolic: shard %d has no gradings, which the stage grade commits before the reward is worked out", in.Shard)
	}
	rows, err := read[schema.GradingRow](ctx, d, in.Gradings)
	if err != nil {
		return err
	}
	return g.take(rows, trajectories)
}

// asksOther is why gradings do not fit where no byte of them is damaged.
const asksOther = "a reward that takes other answers than the step's needs gradings of its own, which a replay cannot make"

// take checks the rows and takes their verdicts.
func (g *grader) take(rows []schema.GradingRow, trajectories []schema.TrajectoryRow) error {
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
			return refuse(wire.FailRefused, "trajectory %s has no row in gradings, and its answer %q is to be held against %q: %s", t.TrajectoryID, q.Answer, q.Gold, asksOther)
		case r.Answer != q.Answer || r.Gold != q.Gold:
			return refuse(wire.FailRefused, "trajectory %s: its row in gradings holds %q against %q, and its answer %q is to be held against %q: %s",
				t.TrajectoryID, r.Answer, r.Gold, q.Answer, q.Gold, asksOther)
		case r.Excluded != nil:
			t.Excluded = r.Excluded
		default:
			g.equal[t.TrajectoryID] = r.Verdict == schema.GradingEqual
		}
	}
	for _, r := range rows {
		if _, stray := graded[r.TrajectoryID]; stray {
			return refuse(wire.FailCorrupt, "gradings hold a row of trajectory %s, which the shard's trajectories do not have", r.TrajectoryID)
		}
	}
	return nil
}
