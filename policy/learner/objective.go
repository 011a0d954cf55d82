package learner

import (
	"errors"
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/schema"
)

// Terms are what a loss holds beside its surrogate, all aggregated as the surrogate is:
// surrogate·w + KLCoefficient·KL − Entropy·H, with w the weight of truncated importance sampling.
type Terms struct {
	KL            loss.Estimator // of the divergence from the reference policy; "" for none
	KLCoefficient float64
	Entropy       float64 // coefficient of the policy's entropy
	TISCap        float64 // bound of a token's weight old/rollout; 0 for no weights
}

// Refusals of rows that lack what a term needs.
var (
	ErrNoReference = errors.New("reference log-probabilities are null")
	ErrNoRollout   = errors.New("the rollout's log-probabilities are null")
)

func (t Terms) validate() error {
	for _, c := range []struct {
		name  string
		value float64
	}{{"KL coefficient", t.KLCoefficient}, {"entropy coefficient", t.Entropy}, {"TIS cap", t.TISCap}} {
		if !(c.value >= 0) || math.IsInf(c.value, 0) {
			return fmt.Errorf("%s must be finite and ≥ 0, got %g", c.name, c.value)
		}
	}
	if t.KL == "" {
		return nil
	}
	_, _, err := t.KL.Estimate(0, 0)
	return err
}

// prepare takes what the terms need from a row of the batch. The weights of truncated importance
// sampling are constants, and every surrogate is proportional to the advantage, so they go there.
func (t Terms) prepare(r *row, b schema.BatchRow) error {
	if t.KL != "" {
		if b.ReferenceLogProbs == nil {
			return ErrNoReference
		}
		if len(b.ReferenceLogProbs) != len(b.TokenIDs) {
			return fmt.Errorf("%w: %d reference log-probabilities for %d tokens", loss.ErrBadRow, len(b.ReferenceLogProbs), len(b.TokenIDs))
		}
		r.reference = widen(b.ReferenceLogProbs)
	}
	if t.TISCap == 0 {
		return nil
	}
	if b.RolloutLogProbs == nil {
		return ErrNoRollout
	}
	if len(b.RolloutLogProbs) != len(b.TokenIDs) {
		return fmt.Errorf("%w: %d log-probabilities of the rollout for %d tokens", loss.ErrBadRow, len(b.RolloutLogProbs), len(b.TokenIDs))
	}
	for i, m := range r.loss.Mask {
		if m != 0 {
			ratio := math.Min(r.loss.Old[i]-float64(b.RolloutLogProbs[i]), loss.LogRatioClamp)
			r.loss.Advantages[i] *= math.Min(math.Exp(ratio), t.TISCap)
		}
	}
	return nil
}

// objective adds up one mini-batch's loss over its micro-batches.
type objective struct {
	u          *updater
	loss, mean loss.Denominator // of the loss, and of means over tokens
	total      loss.Result
	entropy    float64 // mean over tokens
	kl         float64 // mean over tokens of the estimate against the reference
}

func (u *updater) objective(rows []int) (*objective, error) {
	masks, counts := u.shapes(rows)
	d, err := u.cfg.Aggregation.Denominator(masks, counts)
	if err != nil {
		return nil, err
	}
	mean, err := loss.Aggregation{Mode: loss.TokenMean}.Denominator(masks, counts)
	return &objective{u: u, loss: d, mean: mean}, err
}

// evaluate adds a micro-batch's share and returns its cotangents.
func (o *objective) evaluate(rows []int, out policy.TokenOutputs) (cotangents, error) {
	part, err := loss.Evaluate(o.u.cfg.Surrogate, o.u.filled(rows, out), o.loss)
	if err != nil {
		return cotangents{}, err
	}
	o.total.Loss += part.Loss
	o.total.Tally.Merge(part.Tally)
	masks, counts := o.u.shapes(rows)
	entropies := widenAll(out.Entropies)
	share, err := o.mean.Aggregate(entropies, masks, counts)
	if err != nil {
		return cotangents{}, err
	}
	o.entropy += share
	c := cotangents{logProbs: part.Cotangents}
	if err := o.addKL(rows, out, c.logProbs); err != nil {
		return c, err
	}
	c.entropies, err = o.addEntropy(entropies, masks, counts)
	return c, err
}

// addKL adds the penalty on the divergence from the reference.
func (o *objective) addKL(rows []int, out policy.TokenOutputs, logProbs [][]float64) error {
	t := o.u.cfg.Terms
	if t.KL == "" {
		return nil
	}
	masks, counts := o.u.shapes(rows)
	values := make([][]float64, len(rows))
	for k, i := range rows {
		values[k] = make([]float64, len(masks[k]))
		weight := t.KLCoefficient * float64(counts[k]) * o.loss.Weight(o.u.rows[i].loss.Tokens())
		for n, m := range masks[k] {
			if m == 0 {
				continue
			}
			value, gradient, err := t.KL.Estimate(float64(out.LogProbs[k][n]), o.u.rows[i].reference[n])
			if err != nil {
				return err
			}
			values[k][n] = value
			logProbs[k][n] += weight * gradient
		}
	}
	share, err := o.loss.Aggregate(values, masks, counts)
	if err != nil {
		return err
	}
	o.total.Loss += t.KLCoefficient * share
	share, err = o.mean.Aggregate(values, masks, counts)
	o.kl += share
	return err
}

// addEntropy takes the bonus off and returns d(loss)/d(entropy), nil where there is none.
func (o *objective) addEntropy(entropies [][]float64, masks [][]int32, counts []int32) ([][]float64, error) {
	c := o.u.cfg.Terms.Entropy
	if c == 0 {
		return nil, nil
	}
	share, err := o.loss.Aggregate(entropies, masks, counts)
	o.total.Loss -= c * share
	out := make([][]float64, len(masks))
	for k, mask := range masks {
		out[k] = make([]float64, len(mask))
		tokens := loss.Row{Mask: mask}.Tokens()
		for n, m := range mask {
			if m != 0 {
				out[k][n] = -c * float64(counts[k]) * o.loss.Weight(tokens)
			}
		}
	}
	return out, err
}

// divergence is the mean estimate against the reference; nil where no term takes it.
func (o *objective) divergence() *float64 {
	if o.u.cfg.Terms.KL == "" {
		return nil
	}
	return new(o.kl)
}

// shapes returns the masks and counts of rows.
func (u *updater) shapes(rows []int) (masks [][]int32, counts []int32) {
	for _, i := range rows {
		masks = append(masks, u.rows[i].loss.Mask)
		counts = append(counts, u.rows[i].loss.Count)
	}
	return masks, counts
}

// filled joins the rows with the log-probabilities of a forward pass.
func (u *updater) filled(rows []int, out policy.TokenOutputs) []loss.Row {
	filled := make([]loss.Row, len(rows))
	for k, i := range rows {
		filled[k] = u.rows[i].loss
		filled[k].LogProbs = widen(out.LogProbs[k])
		if a, ok := u.weighed[i]; ok {
			filled[k].Advantages = a
		}
	}
	return filled
}
