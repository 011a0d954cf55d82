package activities

import (
	"fmt"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/rl/schedule"
	"github.com/ropewalk/ropewalk/schema"
)

// grader scores trajectories by a recipe's reward.
type grader struct {
	reward recipes.Reward
	limit  int             // tokens of a trajectory
	mu     float64         // weight of a tool term at the step
	equal  map[string]bool // trajectories whose answer a committed grading found equal to the gold
}

// newGrader makes the grader of a step. The tool term's weight μ follows the run's steps, of which the
// first is 1: that is the global training step of the papers.
func newGrader(recipe *recipes.Recipe, step int) grader {
	g := grader{reward: recipe.Reward, limit: recipe.Rollout.MaxTokens, mu: 1}
	if recipe.Schedule != nil {
		g.mu = schedule.Curriculum{DecaySteps: recipe.Schedule.MuHorizon}.Mu(step)
	}
	return g
}

// graded is a trajectory's reward, and the outcome that it builds on: how the answer compared.
type graded struct {
	reward  float64
	outcome reward.Outcome
}

// readable refuses, before anything is scored, trajectories that do not say what the reward reads.
func (g grader) readable(t schema.TrajectoryRow) error {
	switch {
	case g.reward.Name == recipes.Reference && (t.SourceReward == nil || t.Reference == nil):
		return refuse(wire.FailCorrupt, "trajectory %s has no reward of its source", t.TrajectoryID)
	case readsFacts(g.reward.Name) && t.BegunCalls == nil && t.Excluded == nil:
		return refuse(wire.FailRefused, "reward.name: %s reads how each turn was written, which trajectory %s does not say: it was assembled by an earlier version; "+
			"run the recipe again with the same seed: ropewalk run RECIPE --seed N", g.reward.Name, t.TrajectoryID)
	}
	return nil
}

// readsFacts reports whether a reward reads a trajectory's turns and calls beyond its text and answer.
func readsFacts(name string) bool {
	switch name {
	case "spear", "spear_math", "spear_math_qwen3", "spear_agent", "retool", "prs_short", "prs_long", "prs_general":
		return true
	}
	return false
}

// gradable reports whether a reward follows from committed trajectories alone: their text, answer and
// turns, or what their source said.
func gradable(name string) bool {
	switch name {
	case recipes.RStar2Outcome, recipes.MathAnswer, recipes.Reference, "arlarena", "dapo_strict", "exact_match", "f1":
		return true
	}
	return readsFacts(name)
}

// grade scores one trajectory. The error is the program's: recipes were validated, and no text makes
// grading fail.
func (g grader) grade(t schema.TrajectoryRow) (graded, error) {
	out, err := g.base(t)
	if err != nil || g.reward.Overlong == nil {
		return out, err
	}
	o := reward.Overlong{Mode: reward.OverlongSoft, MaxLength: g.limit, Buffer: g.reward.Overlong.Buffer, Factor: g.reward.Overlong.Factor}
	out.reward, err = o.Reward(out.reward, int(t.Tokens), t.Finish == finishLength)
	return out, err
}

// finishLength is the finish of a trajectory that was cut off at a limit of tokens.
const finishLength = "length"

// base is the reward without its penalty on length.
func (g grader) base(t schema.TrajectoryRow) (graded, error) {
	switch name := g.reward.Name; name {
	case recipes.Reference:
		return fromSource(t), nil
	case recipes.RStar2Outcome, recipes.MathAnswer, arlarena:
		return of(g.outcome(t)), nil
	case "dapo_strict":
		out, err := reward.DAPO{Form: reward.DAPOStrict}.Reward(t.Text, t.Gold)
		return of(out), err
	case "exact_match", "f1":
		return g.words(t)
	case "prs_short", "prs_long", "prs_general":
		return g.prs(t)
	case "spear", "spear_math", "spear_math_qwen3", "spear_agent", "retool":
		return g.spear(t)
	default:
		return graded{}, fmt.Errorf("reward.name: %s cannot be worked out of a committed trajectory", name)
	}
}

func of(o reward.Outcome) graded { return graded{reward: o.Reward, outcome: o} }

// arlarena is the reward of mathematics with a tool: 1 if the last box agrees, wherever it stands.
const arlarena = "arlarena"

// outcome is how the answer compared with the gold, symbolic gradings included.
func (g grader) outcome(t schema.TrajectoryRow) reward.Outcome {
	return g.compared(t).Settled(g.equal[t.TrajectoryID])
}

// compared is the outcome by strings, values and lists: of an imported answer, of the last box, or rStar2's,
// which other rewards take their success from: the box inside <answer>.
func (g grader) compared(t schema.TrajectoryRow) reward.Outcome {
	switch g.reward.Name {
	case recipes.MathAnswer:
		return extracted(t)
	case arlarena:
		return reward.RStar2{Options: g.options(), WholeText: true}.Reward(t.Text, t.Gold)
	}
	return reward.Grade(t.Text, t.Gold, g.options())
}

// options say how strictly an answer is compared.
func (g grader) options() reward.Options {
	if g.reward.Name == recipes.MathAnswer {
		return reward.Options{}
	}
	return reward.Options{Fallback: g.reward.Fallback, Literal: true}
}

// fromSource is the reward that an importer found.
func fromSource(t schema.TrajectoryRow) graded {
	verdict := reward.ReferenceFailure
	if *t.Reference {
		verdict = reward.ReferenceSuccess
	}
	return graded{reward: *t.SourceReward, outcome: reward.Outcome{Reward: *t.SourceReward, Verdict: verdict, Answer: t.FinalAnswer}}
}

// extracted takes the answer that an importer has extracted.
func extracted(t schema.TrajectoryRow) reward.Outcome {
	if !t.HasAnswer {
		return reward.Outcome{Verdict: reward.NoAnswer}
	}
	verdict := reward.Compare(t.FinalAnswer, t.Gold, reward.Options{})
	return reward.Outcome{Reward: verdict.Score(), Verdict: verdict, Answer: t.FinalAnswer}
}

// words compares the answer as question answering does. The verdict stays that of the outcome.
func (g grader) words(t schema.TrajectoryRow) (graded, error) {
	out := graded{outcome: g.outcome(t)}
	if !t.HasAnswer {
		return out, nil
	}
	metric := reward.QAExact
	if g.reward.Name == "f1" {
		metric = reward.QAF1
	}
	var err error
	out.reward, err = reward.QA{Metric: metric}.Reward(t.FinalAnswer, []string{t.Gold})
	return out, err
}

// prs is progressive reward shaping, with exact match in the place of the judge.
func (g grader) prs(t schema.TrajectoryRow) (graded, error) {
	out := graded{outcome: g.outcome(t)}
	golds := []string{t.Gold}
	judgement := reward.Mismatch
	if t.HasAnswer && reward.ExactMatch(t.FinalAnswer, golds) {
		judgement = reward.Match
	}
	p := reward.PRS{Form: reward.PRSShort}
	if g.reward.SmoothedBLEU {
		p.BLEU.Smoothing = 0.1
	}
	if g.reward.Name == "prs_long" {
		p.Form = reward.PRSLong
	}
	parts, err := p.Reward(facts(t, out.outcome), t.FinalAnswer, golds, judgement)
	if err != nil {
		return out, err
	}
	if out.reward = parts.Total; g.reward.Name == "prs_general" {
		// Its stages are process, judge and answer; the form of the text is none of them.
		out.reward, err = reward.GeneralPRS([]float64{parts.Process, judgement.Score(), parts.Answer}, []float64{g.reward.ProcessGate, g.reward.JudgeGate})
	}
	return out, err
}

// spear is SPEAR's composite reward, or a variant of its release.
func (g grader) spear(t schema.TrajectoryRow) (graded, error) {
	s := reward.SPEAR{
		Variant:  reward.SPEARVariant(g.reward.Name),
		ToolStep: g.reward.ToolStep, WithoutTool: g.reward.ToolStep == 0,
		FormatBonus: g.reward.FormatBonus, WithoutFormat: g.reward.FormatBonus == 0,
	}
	if g.reward.Name == "spear" {
		s.Variant = reward.SPEARComposite
	}
	out := graded{outcome: g.outcome(t)}
	parts, err := s.Weigh(facts(t, out.outcome), g.mu)
	out.reward = parts.Total
	return out, err
}

// facts are what the record says of a trajectory. A call that was begun when the trajectory ended has
// no verdict and so was not executed.
func facts(t schema.TrajectoryRow, o reward.Outcome) reward.Facts {
	return reward.Facts{
		Success: o.Verdict.Correct(), Turns: int(t.Turns), ToolTurns: number(t.ToolTurns), MalformedTurns: number(t.MalformedTurns),
		Calls: number(t.BegunCalls), ParsedCalls: number(t.ParsedCalls), ExecutedCalls: int(t.ToolCalls - t.ToolErrors), Answered: t.HasAnswer,
	}
}

// number is 0 where there is none.
func number(n *int32) int {
	if n == nil {
		return 0
	}
	return int(*n)
}
