package grading

import (
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/judge"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// Judged reports whether the reward reads a judge's verdicts.
func (g *Grader) Judged() bool { return g.reward.Judged() }

// Queries returns what a judge is asked about the trajectories whose reward depends on it, with their rows, which have
// no verdicts yet. problems holds the texts of the questions by group.
func (g *Grader) Queries(trajectories []schema.TrajectoryRow, problems map[string]string) (rows []schema.JudgementRow,
	queries []reward.Query, err error) {
	for _, t := range trajectories {
		q, open, err := g.query(t)
		if err != nil {
			return nil, nil, err
		}
		if !open {
			continue
		}
		if q.Question, open = problems[t.GroupID]; !open {
			return nil, nil, refusal.Corruptf("trajectory %s: its group has no prompt", t.TrajectoryID)
		}
		q.Criteria = g.criteria
		rows, queries = append(rows, judgementOf(t, q)), append(queries, q)
	}
	return rows, queries, nil
}

// MatchQueries asks of every trajectory with an answer whether it means the same as the gold, as evaluations measure
// it. What the prompts ask is in problems, by group.
func MatchQueries(trajectories []schema.TrajectoryRow, problems map[string]string) (rows []schema.JudgementRow,
	queries []reward.Query) {
	for _, t := range trajectories {
		if t.Excluded != nil || !t.HasAnswer || t.FinalAnswer == "" {
			continue
		}
		q := reward.Query{Criterion: reward.Matching, Question: problems[t.GroupID], Response: t.FinalAnswer,
			References: env.SplitGolds(t.Gold)}
		rows, queries = append(rows, judgementOf(t, q)), append(queries, q)
	}
	return rows, queries
}

func judgementOf(t schema.TrajectoryRow, q reward.Query) schema.JudgementRow {
	return schema.JudgementRow{GroupID: t.GroupID, TrajectoryID: t.TrajectoryID, Criterion: string(q.Criterion),
		Answer: q.Response, Gold: t.Gold}
}

// query is what a judge is asked about a trajectory, if the reward depends on it.
func (g *Grader) query(t schema.TrajectoryRow) (reward.Query, bool, error) {
	if t.Excluded != nil || !g.Judged() {
		return reward.Query{}, false, nil
	}
	scorer, err := reward.New(g.reward.Name, g.reward.Params)
	if err != nil {
		return reward.Query{}, false, err
	}
	q, open := scorer.(reward.Judged).Ask(g.trajectory(t), g.compared(t))
	return q, open, nil
}

// FillJudgements puts the judge's answers into the rows that they belong to, in order. A broken answer becomes a reason
// that excludes its trajectory.
func FillJudgements(rows []schema.JudgementRow, answers []judge.Answer, of recipes.Judge) {
	for i := range rows {
		r, a := &rows[i], answers[i]
		r.PromptDigest, r.Model, r.AnsweredBy = a.PromptDigest, of.Model, a.AnsweredBy
		r.Reply, r.Attempts, r.Verdict = a.Reply, int32(a.Attempts), string(a.Verdict)
		if a.Broken != nil {
			r.Excluded = new(rollout.Reason("judge", a.Broken.Error()))
		}
	}
}

// asksOtherwise explains why undamaged judgements may not fit.
const asksOtherwise = "a reward that asks a judge about other answers than the step's needs judgements of its own, " +
	"which a replay cannot make"

// SettleJudgements takes over the committed verdicts on the trajectories whose reward depends on a judge, and excludes
// those that got none. Each of them must have its row, with the same answer, gold and criterion, and the verdict must
// be what the reply says. Rows that the reward, with its current settings, does not ask about are ignored.
func (g *Grader) SettleJudgements(rows []schema.JudgementRow, trajectories []schema.TrajectoryRow) error {
	judged := make(map[string]schema.JudgementRow, len(rows))
	for _, r := range rows {
		judged[r.TrajectoryID] = r
	}
	g.judgements = map[string]reward.Judgement{}
	for i := range trajectories {
		t := &trajectories[i]
		r, found := judged[t.TrajectoryID]
		delete(judged, t.TrajectoryID)
		q, open, err := g.query(*t)
		switch {
		case err != nil:
			return err
		case !open:
		case !found:
			return refusal.Unusablef("trajectory %s has no row in judgements, and its answer %.80q is to be judged: %s",
				t.TrajectoryID, q.Response, asksOtherwise)
		case r.Answer != q.Response || r.Gold != t.Gold || r.Criterion != string(q.Criterion):
			return refusal.Unusablef(
				"trajectory %s: its row in judgements asks whether %.80q is %s, and the reward asks "+
					"whether %.80q is %s: %s",
				t.TrajectoryID,
				r.Answer,
				r.Criterion,
				q.Response,
				q.Criterion,
				asksOtherwise,
			)
		case r.Excluded != nil:
			t.Excluded = r.Excluded
		default:
			if read, ok := reward.ReadJudgement(r.Reply); !ok || string(read) != r.Verdict {
				return refusal.Corruptf("trajectory %s: its row in judgements has the verdict %s, and the reply %.80q "+
					"does not say so", t.TrajectoryID, r.Verdict, r.Reply)
			}
			g.judgements[t.TrajectoryID] = reward.Judgement(r.Verdict)
		}
	}
	for _, r := range rows {
		if _, stray := judged[r.TrajectoryID]; stray {
			return refusal.Corruptf(
				"judgements hold a row of trajectory %s, which the shard's trajectories do not have",
				r.TrajectoryID,
			)
		}
	}
	return nil
}

// judgement is the committed verdict on a trajectory. One that the reward does not ask a judge about counts as no
// match: the reward does not read it.
func (g *Grader) judgement(t schema.TrajectoryRow) reward.Judgement {
	if !g.Judged() {
		return ""
	}
	if j, ok := g.judgements[t.TrajectoryID]; ok {
		return j
	}
	return reward.Mismatch
}
