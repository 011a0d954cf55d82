package prepare

import (
	"context"
	"strconv"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/forks"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// resolve returns the recipe of a run: the one that is asked for or, of a fork, that of the last shared step with
// changes.
func (a PrepareRun) resolve(ctx context.Context, in api.PrepareInput) (*recipes.Resolved, error) {
	if in.Fork == nil {
		return recipes.Resolve(recipeName(in), in.RecipeYAML, in.Overrides, in.Seed, in.Steps)
	}
	if in.Fork.Run == in.Run {
		return nil, badinput.Errorf("run_id: a fork of run %s needs a name of its own", in.Run)
	}
	at, err := forks.At(ctx, a.Record, *in.Fork)
	if err != nil {
		return nil, err
	}
	resolved, err := at.Resolve(in.Overrides)
	if err != nil {
		return nil, err
	}
	if in.ForkFrom != "" {
		if _, err := at.Part(ctx, in.ForkFrom, in.Overrides); err != nil {
			return nil, err
		}
	}
	return resolved, samePolicy(ctx, &a.Recipes, &at.Recipe, &resolved.Recipe)
}

// share makes the run that a manifest prepares a fork, if one is asked for.
func (a PrepareRun) share(ctx context.Context, in api.PrepareInput, recipe *recipes.Recipe, m *schema.Manifest) error {
	if in.Fork == nil {
		return nil
	}
	at, err := forks.At(ctx, a.Record, *in.Fork)
	if err != nil {
		return err
	}
	m.Note[schema.NoteFork], m.Inputs = in.ForkNote(), append(m.Inputs, at.Config, at.Update)
	if in.ForkFrom != "" {
		m.Note[schema.NoteForkFrom] = in.ForkFrom
	}
	return at.Share(ctx, in.Run, recipe.Staleness())
}

// sharePart copies to a fork at a stage what it shares of its first own step, until that step is done.
func (a PrepareRun) sharePart(ctx context.Context, m schema.Manifest, ref schema.Ref, fork schema.ForkPoint) error {
	from := m.Note[schema.NoteForkFrom]
	if from == "" {
		return nil
	}
	if _, _, done, err := a.Record.Head(ctx, m.Run, strconv.Itoa(fork.Step+1)); done || err != nil {
		return err
	}
	at, err := forks.At(ctx, a.Record, fork)
	if err != nil {
		return err
	}
	part, err := at.Part(ctx, from, nil)
	if err != nil {
		return err
	}
	return part.Copy(ctx, m.Run, ref, m.Config)
}
