package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/activities/failure"
	"github.com/ropewalk/ropewalk/activities/prepare"
	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// A replay of the reward reads what the user's function returned, as far as the function is the same. If the step has
// no results of it, or its settings or its code have changed, the replay calls it again with the recorded
// trajectories. Such a replay is pure only if the code and its answers are the same as in the step.

// findResults finds the results of the user's function that a reward reads, or the problems with which it is called.
func (a PrepareReplay) findResults(ctx context.Context, r *replayed) (err error) {
	refs := r.plan.Made.Refs[schema.StageFunction]
	f, _ := r.recipe.Reward.Function()
	was, had := r.before.Reward.Function()
	same := len(refs) > 0 && had && f == was
	if same {
		if same, err = a.sameCode(ctx, refs[0], r.recipe); err != nil {
			return err
		}
	}
	if same {
		return a.findVerdicts(ctx, r, schema.StageFunction, "")
	}
	if err := prepare.Implemented(r.recipe.Name, r.recipe.Unset()); err != nil {
		return err
	}
	if r.out.Problems, err = r.plan.Made.One(schema.StagePrompts, schema.StageFunction); err != nil {
		return err
	}
	r.plan.Read(schema.Prompts, r.out.Problems)
	for _, ref := range refs {
		r.out.Before = append(r.out.Before, api.StageRef{Stage: schema.StageFunction, Ref: ref})
	}
	return a.replayConfirmed(ctx, r.in, r.before, r.recipe)
}

// sameCode reports whether the function's files hold what the step has called. A program that loads no code, as the
// one that checks a replay before it starts, and a worker without the code trust the record.
func (a PrepareReplay) sameCode(ctx context.Context, results schema.Ref, recipe *recipes.Recipe) (bool, error) {
	f, ok := recipe.Function()
	if a.Execution.Functions == nil || !ok {
		return true, nil
	}
	m, err := a.Record.Read(ctx, results)
	if err != nil {
		return false, err
	}
	parts, err := a.Record.Parts(ctx, m)
	if err != nil || len(parts) == 0 {
		return true, err
	}
	files, err := a.Execution.Functions.Code(ctx, f)
	if err != nil {
		return true, ctx.Err()
	}
	return len(remote.Edited(parts[0].Note[schema.NoteRewardCode], files)) == 0, nil
}

// replayConfirmed is confirmed for a replay that calls code which its run was not confirmed for: the command that
// starts a replay leaves a note in the store.
func (a PrepareReplay) replayConfirmed(ctx context.Context, in api.ReplayInput, before, recipe *recipes.Recipe) error {
	if !a.Execution.Confirms || slices.Equal(before.Privileged(), recipe.Privileged()) {
		return nil
	}
	if asked, err := prepare.Commanded(ctx, a.Worker, in.Run, schema.DeedReplay, in.Set); asked || err != nil {
		return err
	}
	return failure.Permanent(api.FailUnconfirmed, fmt.Errorf("no command of yours has started the replay, and its "+
		"recipe wants programs or secrets of yours: %s; start it with `ropewalk replay`",
		strings.Join(recipe.Privileged(), "; ")))
}
