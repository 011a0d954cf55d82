package batch

import (
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// Statistics of a batch, if its rewards include a penalty on the distance from the reference, or if the step's loss
// includes an adaptive one: the mean divergence of the policy that sampled, the coefficient of the step's penalty, and
// the coefficient of the next step's penalty.
const (
	statKL              = "kl"
	statKLCoefficient   = "kl_coefficient"
	statKLCoefficientTo = "kl_coefficient_next"
)

// StartKL is the coefficient of a step's penalty, if its batch needs one: for a penalty in the reward, or for an
// adaptive one. adapted reports that the coefficient instead follows from the previous step's batch: see NextKL.
func StartKL(kl *loss.KLSettings, step int) (beta float64, adapted bool) {
	if kl == nil || kl.In == loss.KLInLoss && kl.Controller != loss.KLAdaptive {
		return 0, false
	}
	return kl.Coefficient, kl.Controller == loss.KLAdaptive && step > 1
}

// NextKL is the coefficient that a batch's statistics give the next step. found is false if the batch was made under a
// recipe without an adaptive penalty.
func NextKL(stats map[string]float64) (beta float64, found bool, err error) {
	beta, found = stats[statKLCoefficientTo]
	if found && !(beta >= 0) {
		return 0, true, refusal.Corruptf("the batch records %g as the next coefficient of loss.kl", beta)
	}
	return beta, found, nil
}

// UpdateKL is the coefficient of the penalty in a step's loss, 0 if there is none. stats are the statistics of the
// step's batch, which record an adaptive coefficient, so that the update follows from its inputs.
func UpdateKL(kl *loss.KLSettings, stats map[string]float64) (float64, error) {
	switch {
	case kl == nil || kl.In != loss.KLInLoss:
		return 0, nil
	case kl.Controller != loss.KLAdaptive:
		return kl.Coefficient, nil
	}
	beta, ok := stats[statKLCoefficient]
	if !ok || !(beta >= 0) {
		return 0, refusal.Corruptf("the coefficient of loss.kl adapts, and the batch records %g for it", beta)
	}
	return beta, nil
}

// measure records the divergence that a penalty in the loss adapts to: the divergence of the policy that sampled, on
// the batch's rows. It is known before the update. (A penalty in the reward is measured where it is applied.)
func (e *estimation) measure() error {
	kl := e.method.Loss.KL()
	if kl == nil || kl.In != loss.KLInLoss || kl.Controller != loss.KLAdaptive {
		return nil
	}
	mean, err := loss.MeanKL(kl.Estimator, e.old(), e.references(), e.masks())
	if err != nil {
		return err
	}
	e.steer(mean)
	return nil
}

// steer records the divergence and the coefficient for the next step.
func (e *estimation) steer(mean float64) {
	kl, next := e.method.Loss.KL(), e.beta
	if kl.Controller == loss.KLAdaptive {
		next = loss.AdaptiveKL{Target: kl.Target, Horizon: float64(kl.Horizon)}.Next(e.beta, mean, e.trajectories())
	}
	e.stats = map[string]float64{statKL: mean, statKLCoefficient: e.beta, statKLCoefficientTo: next}
}

// trajectories counts the trajectories of the batch.
func (e *estimation) trajectories() int {
	seen := map[string]bool{}
	for _, r := range e.rows {
		seen[r.TrajectoryID] = true
	}
	return len(seen)
}
