package learn

import (
	"context"
	"fmt"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/batch"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// klCoefficient is the coefficient of a step's penalty, if its batch needs one. An adaptive coefficient follows from
// what the previous step has committed, which becomes an input of the stage.
func klCoefficient(ctx context.Context, w *stage.Draft, scope api.Scope) (float64, error) {
	beta, adapted := batch.StartKL(w.Recipe.Loss.KL(), scope.Step)
	if !adapted {
		return beta, nil
	}
	head, _, found, err := w.Worker.Record.Head(ctx, scope.Run, strconv.Itoa(scope.Step-1))
	if err != nil {
		return 0, err
	}
	if !found || len(head.Stages[schema.StageAdvantage]) == 0 {
		return 0, refusal.Corruptf("the coefficient of loss.kl follows from step %d, which has committed no advantages",
			scope.Step-1)
	}
	ref := head.Stages[schema.StageAdvantage][0]
	m, err := w.Worker.Record.Read(ctx, ref)
	if err != nil {
		return 0, err
	}
	next, found, err := batch.NextKL(m.Stats)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", ref.Key, err)
	}
	if !found { // the previous step ran under another recipe
		return beta, nil
	}
	w.Manifest.Inputs = append(w.Manifest.Inputs, ref)
	return next, nil
}

// klInUpdate is the coefficient of the penalty in a step's loss, 0 if there is none.
func klInUpdate(ctx context.Context, r record.Records, made schema.Ref, recipe *recipes.Recipe) (float64, error) {
	m, err := r.Record.Read(ctx, made)
	if err != nil {
		return 0, err
	}
	beta, err := batch.UpdateKL(recipe.Loss.KL(), m.Stats)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", made.Key, err)
	}
	return beta, nil
}
