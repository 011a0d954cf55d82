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

// The statistics of an advantage stage whose rewards hold a penalty on the distance from the reference, or
// whose step's loss holds one that adapts: the mean divergence of the policy that sampled, the coefficient
// of the step's penalty, and the next step's.
const (
	statKL              = "kl"
	statKLCoefficient   = "kl_coefficient"
	statKLCoefficientTo = "kl_coefficient_next"
)

// The choices that the coefficient depends on: the penalty is a term of the loss, and it adapts.
const (
	klInLoss   = "loss"
	klAdaptive = "adaptive"
)

// klCoefficient is the coefficient of a step's penalty where the advantage stage has to know it: in the
// reward, or where it adapts. It then follows from what the step before has committed, which becomes one
// of the stage's inputs.
func (d *Deps) klCoefficient(ctx context.Context, w *draft, scope wire.Scope, recipe *recipes.Recipe) (float64, error) {
	kl := recipe.Loss.KL
	if kl == nil || kl.In == klInLoss && kl.Controller != klAdaptive {
		return 0, nil
	}
	if kl.Controller != klAdaptive || scope.Step <= 1 {
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

// klInUpdate is the coefficient of the penalty in a step's loss, 0 where there is none. One that adapts
// stands beside the batch, so that the update follows from its inputs.
func (d *Deps) klInUpdate(ctx context.Context, batch schema.Ref, recipe *recipes.Recipe) (float64, error) {
	kl := recipe.Loss.KL
	switch {
	case kl == nil || kl.In != klInLoss:
		return 0, nil
	case kl.Controller != klAdaptive:
		return kl.Coefficient, nil
	}
	m, err := d.Record.Read(ctx, batch)
	if err != nil {
		return 0, err
	}
	beta, ok := m.Stats[statKLCoefficient]
	if !ok || !(beta >= 0) {
		return 0, refuse(wire.FailCorrupt, "the coefficient of loss.kl adapts, and %s says %g of it", batch.Key, beta)
	}
	return beta, nil
}

// measure notes the divergence that a penalty in the loss adapts to: that of the policy that sampled, on the
// batch's rows, which is known before the update. (One in the reward is measured as it is taken.)
func (e *estimation) measure() error {
	kl := e.method.Loss.KL
	if kl == nil || kl.In != klInLoss || kl.Controller != klAdaptive {
		return nil
	}
	mean, err := loss.MeanKL(loss.Estimator(kl.Estimator), e.old(), e.references(), e.masks())
	if err != nil {
		return err
	}
	e.steer(mean)
	return nil
}

// steer notes the divergence and the coefficient that the next step has.
func (e *estimation) steer(mean float64) {
	kl, next := e.method.Loss.KL, e.beta
	if kl.Controller == klAdaptive {
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
