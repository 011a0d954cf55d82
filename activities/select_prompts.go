package activities

import (
	"context"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/schema"
)

// SelectPrompts takes the step's problems off the training stream. The stream is a function of
// seed, step and index, so its ledger is the range of indexes that the manifest notes: a prompt
// is consumed by the commit, once, whatever restarts.
type SelectPrompts struct{ *Deps }

// Execute commits one row per group, none of them a held-out problem.
func (a SelectPrompts) Execute(ctx context.Context, in wire.Scope) (wire.Done, error) {
	out := wire.Done{}
	s := spec{scope: in, stage: wire.StagePrompts, turn: -1, shard: -1}
	err := execute(ctx, a.Deps, s, &out, &out, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in)
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
		for i := range rows {
			rows[i] = loop.PromptRow(in.Step, i, calc.Training(recipe.Seed, in.Step, i, shares))
		}
		w.timing.Rows = int64(len(rows))
		first := (in.Step - 1) * len(rows)
		w.manifest.Note = map[string]string{"ledger_from": strconv.Itoa(first), "ledger_to": strconv.Itoa(first + len(rows))}
		return put(ctx, w, rows)
	})
	return out, err
}
