package activities

import (
	"context"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/schema"
)

// SelectPrompts takes the step's problems off the training stream. The stream is a function of
// seed, step and index, so its ledger is the range of indexes that the manifest notes: a prompt
// is consumed by the commit, once, whatever restarts. Each round of dynamic sampling is a part of
// the stage, and its groups are numbered on from those of the round before. In a stage of problems that
// are unsolved, the record of the steps before says which problems are passed over.
type SelectPrompts struct{ *Deps }

// Execute commits one row per group, none of them a held-out problem.
func (a SelectPrompts) Execute(ctx context.Context, in wire.PromptsInput) (wire.Done, error) {
	out := wire.Done{}
	s, round := spec{scope: in.Scope, stage: wire.StagePrompts, turn: -1, shard: -1}, 0
	if in.Round != nil {
		round = *in.Round
		s.shard = round
	}
	err := execute(ctx, a.Deps, s, &out, &out, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		shares, err := calc.ParseShares(recipe.Environment.LevelShares)
		if err != nil {
			return err
		}
		loop, err := a.loop(recipe, recipe.Rollout.Temperature)
		if err != nil {
			return err
		}
		rows := make([]schema.PromptRow, recipe.Rollout.Prompts)
		from := firstProblem(recipe, round)
		solved, err := a.solvedProblems(ctx, w, in.Scope, recipe.Unsolved(in.Step))
		if err != nil {
			return err
		}
		passed := 0
		for i := range rows {
			problem, n, err := unsolvedProblem(in.Step, recipe.Rollout.Prompts*tries(recipe), from+i, solved, func(index int) env.Problem {
				return calc.Training(recipe.Seed, in.Step, index, shares)
			})
			if err != nil {
				return err
			}
			passed += n
			rows[i] = loop.PromptRow(in.Step, round*len(rows)+i, problem)
		}
		w.timing.Rows = int64(len(rows))
		first := (in.Step-1)*len(rows)*tries(recipe) + from
		w.manifest.Note = map[string]string{"ledger_from": strconv.Itoa(first), "ledger_to": strconv.Itoa(first + len(rows))}
		if passed > 0 { // solved ones, in whose places others came from further on in the stream
			w.manifest.Note["passed_over"] = strconv.Itoa(passed)
		}
		return put(ctx, w, rows)
	})
	return out, err
}

// firstProblem is the index of a round's first problem among those of its step.
func firstProblem(recipe *recipes.Recipe, round int) int {
	if d := recipe.Resample.Dynamic; d != nil && d.Refill == method.RefillSame {
		return 0
	}
	return round * recipe.Rollout.Prompts
}

// tries is how many rounds a step may sample.
func tries(recipe *recipes.Recipe) int {
	if d := recipe.Resample.Dynamic; d != nil {
		return d.Tries
	}
	return 1
}
