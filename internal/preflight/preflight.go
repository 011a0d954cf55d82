// Package preflight checks, before a run begins, what follows from its recipe and from the files, the code and the
// servers that the recipe names. A dry run and the preparation of a run use it, so that no run ends after its warm
// start because of something that could be known before.
//
//	recipe, environment ─ World → notes, or a badinput.Error
//	recipe, tasks       ─ Filters → an error if the data section keeps no task
//	recipe, model       ─ Chat → its chat template as protocol chat uses it; ChatNotes → what that means for the run
//	address             ─ OpenModel → what is known about a model before a worker takes it
package preflight

import (
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/curation"
	"github.com/ropewalk/ropewalk/internal/prompts"
	"github.com/ropewalk/ropewalk/recipes"
)

// World draws held-out tasks, and training tasks if the run trains, and begins an episode where episodes run on the
// user's code or on a server. Notes say what a user may not expect. A fault of the recipe or of what it names is a
// badinput.Error; a server that is away is not.
func World(ctx context.Context, r *recipes.Recipe, world env.Environment, trains bool) (notes []string, err error) {
	if other, ok := world.(env.Tried); ok {
		if err := other.Try(ctx); err != nil {
			return nil, fault(ctx, fmt.Errorf("environment.settings: begin an episode of %s: %w", world.Name(), err))
		}
	}
	if trains {
		if _, err := prompts.Draw(ctx, world, r, 1, 0, nil); err != nil {
			return nil, fault(ctx, fmt.Errorf("environment: training tasks: %w", err))
		}
		if r.ClonesGolds() {
			notes = append(notes, "the warm start clones the golds of the training questions: success on them then "+
				"says little; compare with the held-out questions, or set warm_start.demonstrations.form or "+
				"warm_start.steps=0")
		}
	}
	tasks, err := prompts.HeldOut(ctx, world, r)
	if err != nil {
		return nil, fault(ctx, fmt.Errorf("environment: held-out tasks: %w", err))
	}
	if n := r.Evaluation.Problems; len(tasks) < n {
		notes = append(notes, fmt.Sprintf("evaluation.problems is %d, and the held-out split of %s has %d: an "+
			"evaluation takes all of them", n, world.Name(), len(tasks)))
	}
	return notes, nil
}

// fault marks an error as one that the recipe's author can mend, unless the other side is away.
func fault(ctx context.Context, err error) error {
	if errors.Is(err, remote.ErrLost) || ctx.Err() != nil {
		return err
	}
	return badinput.Of(err)
}

// Filters refuses a data section that keeps no training task. It leaves out the filters that read another run or ask a
// model.
func Filters(ctx context.Context, r *recipes.Recipe, world env.Environment) error {
	list, ok := world.(env.Lister)
	if r.Data == nil || !ok {
		return nil
	}
	tasks, err := list.Tasks(ctx, env.Train)
	if err != nil {
		return badinput.Errorf("environment: training tasks: %w", err)
	}
	filters, err := curation.FiltersOf(ctx, *r.Data, list, func(int, string) {})
	if err != nil {
		return badinput.Of(err)
	}
	dropped := map[string]int{}
	for _, v := range filters.Apply(tasks) {
		if v.Reason == "" {
			return nil
		}
		dropped[v.Reason]++
	}
	return badinput.Of(curation.DropsAll(len(tasks), world.Name(), dropped))
}
