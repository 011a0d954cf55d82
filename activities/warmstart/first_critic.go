package warmstart

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// firstCritic makes a critic from the warm start's policy: its weights, with a value head of zeros.
func (a WarmStart) firstCritic(ctx context.Context, w *stage.Draft, in api.Scope, recipe *recipes.Recipe,
	warm schema.Checkpoint) (schema.Checkpoint, error) {
	trainer, err := w.Trainer(ctx, in, recipe)
	if err != nil {
		return schema.Checkpoint{}, err
	}
	var critic schema.Checkpoint
	return critic, trainer.Exclusive(func(policy.Trainer) (err error) {
		if err = trainer.Load(ctx, policy.RoleCritic, warm, false); err == nil {
			critic, err = trainer.Save(ctx, policy.RoleCritic, w.Place, 0, false, nil)
		}
		return err
	})
}
