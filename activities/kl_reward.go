package activities

import (
	"context"
	"fmt"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/schema"
)

// The statistics of an advantage stage whose rewards hold a penalty on the distance from the
// reference: the mean divergence, the coefficient that it was taken with, and the next step's.
const (
	statKL              = "kl"
	statKLCoefficient   = "kl_coefficient"
	statKLCoefficientTo = "kl_coefficient_next"
)

// klCoefficient is the coefficient of a step's penalty in the reward. Where it adapts, it follows from
// what the step before has committed, which is then one of the stage's inputs.
func (d *Deps) klCoefficient(ctx context.Context, w *draft, scope wire.Scope, recipe *recipes.Recipe) (float64, error) {
	kl := recipe.Loss.KL
	if kl == nil || kl.In == klInLoss {
		return 0, nil
	}
	if kl.Controller != "adaptive" || scope.Step <= 1 {
		return kl.Coefficient, nil
	}
	head, _, found, err := d.Record.Head(ctx, scope.Run, strconv.Itoa(scope.Step-1))
	if err != nil {
		return 0, err
	}
	if !found || len(head.Stages[wire.StageAdvantage]) == 0 {
		return 0, refuse(wire.FailCorrupt, "the coefficient of loss.kl follows from step %d, which has committed no advantages", scope.Step-1)
	}
	ref := head.Stages[wire.StageAdvantage][0]
	m, err := d.Record.Read(ctx, ref)
	if err != nil {
		return 0, err
	}
	beta, ok := m.Stats[statKLCoefficientTo]
	if !ok { // the step before was taken under another recipe
		return kl.Coefficient, nil
	}
	if !(beta >= 0) {
		return 0, fmt.Errorf("%w: %s says that the next coefficient is %g", commit.ErrDamaged, ref.Key, beta)
	}
	w.manifest.Inputs = append(w.manifest.Inputs, ref)
	return beta, nil
}

// steer notes the divergence and the coefficient that the next step has.
func (e *estimation) steer(mean float64) {
	kl, next := e.method.Loss.KL, e.beta
	if kl.Controller == "adaptive" {
		next = loss.AdaptiveKL{Target: kl.Target, Horizon: float64(kl.Horizon)}.Next(e.beta, mean, e.trajectories())
	}
	e.stats = map[string]float64{statKL: mean, statKLCoefficient: e.beta, statKLCoefficientTo: next}
}

// trajectories counts those of the batch.
func (e *estimation) trajectories() int {
	seen := map[string]bool{}
	for _, r := range e.rows {
		seen[r.TrajectoryID] = true
	}
	return len(seen)
}

// isOfStage reports whether a ref names a manifest of a stage.
func isOfStage(ref schema.Ref, stage string) bool {
	p, err := schema.ParseManifestKey(ref.Key)
	return err == nil && p.Stage == stage
}
