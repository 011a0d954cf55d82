package grading

import (
	"fmt"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/rl/schedule"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
)

// Grader scores trajectories by a recipe's reward.
type Grader struct {
	// Played is how each trajectory fared in an interactive environment; nil if tasks are questions.
	Played map[string]reward.Played

	reward recipes.Reward
	limit  int     // maximum tokens of a trajectory
	mu     float64 // weight of the reward's tool term at this step
	spec   protocol.Spec
	golds  bool            // a question has several right answers, which are compared by words
	equal  map[string]bool // trajectories whose answer a committed grading found equal to the gold

	criteria   string                      // of the recipe's judge, in place of the reward's
	judgements map[string]reward.Judgement // committed, by trajectory
	results    map[string]reward.Result    // of a user's function, committed, by trajectory
}

// New makes the grader of a step. The tool term's weight μ depends on the step of the run, counted from 1, which is
// the global training step of the papers.
func New(recipe *recipes.Recipe, step int) *Grader {
	g := &Grader{
		reward: recipe.Reward, limit: recipe.Rollout.MaxTokens,
		mu:    schedule.Mu{Horizon: recipe.Schedule.MuHorizon()}.At(step),
		golds: recipe.Environment.Declaration().Golds,
	}
	if recipe.Judge != nil {
		g.criteria = recipe.Judge.Criteria
	}
	if p, err := recipe.Protocol(); err == nil { // imported trajectories have none
		g.spec = p.Spec()
	}
	return g
}

// Check refuses trajectories that lack the facts that the reward reads, before anything is scored.
func (g *Grader) Check(trajectories []schema.TrajectoryRow) error {
	for _, t := range trajectories {
		if err := g.check(t); err != nil {
			return err
		}
	}
	return nil
}

func (g *Grader) check(t schema.TrajectoryRow) error {
	d := g.reward.Declaration()
	_, played := g.Played[t.TrajectoryID]
	switch {
	case g.Played != nil && !played && t.Excluded == nil:
		return refusal.Corruptf("trajectory %s has no transitions", t.TrajectoryID)
	case d.FromSource && (t.SourceReward == nil || t.Reference == nil):
		return refusal.Corruptf("trajectory %s has no reward of its source", t.TrajectoryID)
	case d.ReadsTurns && t.BegunCalls == nil && t.Excluded == nil:
		return refusal.Unusablef("reward.name: %s reads how each turn was written, which trajectory %s does not say: "+
			"it was assembled by an earlier version; run the recipe again with the same seed: ropewalk run RECIPE "+
			"--seed N", g.reward.Name, t.TrajectoryID)
	}
	return nil
}

// FromRecord refuses a reward that depends on more than the committed trajectories, such as the state of a session
// that ended with its episode.
func FromRecord(name string) error {
	if _, ok := reward.Declared(name); ok {
		return nil
	}
	return refusal.Unusablef("reward.name: %s is not known to follow from the committed trajectories alone, so it "+
		"cannot be replayed; replay from resample, or run the recipe again with the same seed: ropewalk run RECIPE "+
		"--seed N", name)
}

// Score grades one trajectory and computes RoC's penalties. An error is a fault of the program: recipes are validated,
// and no text makes grading fail.
func (g *Grader) Score(t schema.TrajectoryRow) (schema.RewardRow, error) {
	outcome, score, err := g.grade(t)
	penalties := resample.StructuredPenalties(int(t.ToolCalls), int(t.ToolErrors), int(t.AnswerTags), int(t.Turns))
	return schema.RewardRow{
		GroupID: t.GroupID, TrajectoryID: t.TrajectoryID, Level: t.Level,
		Reward: score, Outcome: outcome.Reward, Success: outcome.Verdict.Correct(),
		Turns: t.Turns, ToolCalls: t.ToolCalls, ToolErrors: t.ToolErrors, AnswerTags: t.AnswerTags,
		ErrorPenalty: penalties.Error, FormatPenalty: penalties.Format,
		Verdict: string(outcome.Verdict), Reference: t.Reference,
	}, err
}

// Correct reports whether a trajectory's answer is right, as evaluations count it.
func (g *Grader) Correct(t schema.TrajectoryRow) (bool, error) {
	outcome, _, err := g.base(t)
	return outcome.Verdict.Correct(), err
}

// grade returns a trajectory's outcome, which says how the answer compared, and the reward that is based on it.
func (g *Grader) grade(t schema.TrajectoryRow) (reward.Outcome, float64, error) {
	outcome, score, err := g.base(t)
	if err != nil || g.reward.Overlong == nil {
		return outcome, score, err
	}
	soft := g.reward.Overlong
	if soft.Buffer > g.limit {
		return outcome, 0, fmt.Errorf("reward.overlong.buffer must be at most the limit of tokens, got %d of %d",
			soft.Buffer, g.limit)
	}
	return outcome, score + reward.SoftOverlong(int(t.Tokens), g.limit, soft.Buffer, soft.Factor), nil
}

// base is grade without the length penalty.
func (g *Grader) base(t schema.TrajectoryRow) (reward.Outcome, float64, error) {
	scorer, err := reward.New(g.reward.Name, g.reward.Params)
	if err != nil {
		return reward.Outcome{}, 0, fmt.Errorf("reward.name: %w", err)
	}
	outcome := g.compared(t).Settled(g.equal[t.TrajectoryID])
	score, err := scorer.Score(g.trajectory(t), outcome)
	return outcome, score, err
}

// compared is the outcome of comparing strings, values and lists, without symbolic gradings. An answer in the reasoning
// of a protocol is a draft.
func (g *Grader) compared(t schema.TrajectoryRow) reward.Outcome {
	read := g.trajectory(t)
	if g.spec.Name != "" {
		read.Text = g.spec.Spoken(read.Text)
	}
	if g.spec.Answer == protocol.AnswerText && t.HasAnswer { // the protocol has found it, and nothing marks it
		read.Text += "<answer>" + t.FinalAnswer + "</answer>"
	}
	return g.reward.Declaration().Outcome(read, g.options())
}

// options say where the protocol's answers are and how strictly they are compared.
func (g *Grader) options() reward.Options {
	return reward.Options{
		Fallback: g.reward.Fallback || g.spec.Answer == protocol.AnswerBox,
		Literal:  true,
		Plain:    g.spec.Answer == protocol.AnswerInTags || g.spec.Answer == protocol.AnswerText,
	}
}

// trajectory is what rewards read from a row.
func (g *Grader) trajectory(t schema.TrajectoryRow) reward.Trajectory {
	out := reward.Trajectory{
		Text: t.Text, Gold: t.Gold, Answer: t.FinalAnswer, Answered: t.HasAnswer, Facts: facts(t),
		SourceReward: t.SourceReward, SourceSuccess: t.Reference, ToolWeight: g.mu,
	}
	if played, ok := g.Played[t.TrajectoryID]; ok {
		out.Played = &played
		out.Facts.ToolTurns = played.Acted
	}
	out.Judgement, out.Function = g.judgement(t), g.result(t)
	if g.golds {
		out.Golds = env.SplitGolds(t.Gold)
	}
	return out
}

// facts are the counts of turns and calls in the record. A call that had only begun when the trajectory ended has no
// verdict, so it counts as not executed.
func facts(t schema.TrajectoryRow) reward.Facts {
	return reward.Facts{
		Turns: int(t.Turns), ToolTurns: orZero(t.ToolTurns), MalformedTurns: orZero(t.MalformedTurns),
		Calls: orZero(t.BegunCalls), ParsedCalls: orZero(t.ParsedCalls), ExecutedCalls: int(t.ToolCalls - t.ToolErrors),
		Answered: t.HasAnswer,
	}
}

// orZero returns *n, or 0 for nil.
func orZero(n *int32) int {
	if n == nil {
		return 0
	}
	return int(*n)
}
