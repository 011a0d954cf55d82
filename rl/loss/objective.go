package loss

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

// Objective is the function whose gradient a mini-batch takes:
//
//	agg(w·keep·ℓ) − c_H·agg(H) + c_KL·agg(KL)
//
// where ℓ is a surrogate, w the weights of TIS and keep the sequence mask. Any term may be missing. All terms
// share the aggregation.
type Objective struct {
	Policy       Surrogate // nil for none
	Aggregation  Aggregation
	SequenceMask *SequenceMask
	TIS          *TIS
	KL           *KL
	Entropy      *Entropy
}

// Validate reports the first bad field.
func (o Objective) Validate() error {
	if err := o.Aggregation.Validate(); err != nil {
		return err
	}
	if o.Policy == nil && o.KL == nil && o.Entropy == nil {
		return errors.New("an objective needs a policy loss, a KL penalty or an entropy term")
	}
	var errs []error
	if o.Policy != nil {
		errs = append(errs, o.Policy.Validate())
	}
	if o.SequenceMask != nil {
		errs = append(errs, o.SequenceMask.Validate(), o.needsRatios("sequence_mask"))
	}
	if o.TIS != nil {
		errs = append(errs, o.TIS.Validate(), o.needsRatios("tis"))
	}
	if o.KL != nil {
		errs = append(errs, o.KL.Validate())
	}
	if o.Entropy != nil {
		errs = append(errs, o.Entropy.Validate())
	}
	return errors.Join(errs...)
}

// needsRatios refuses a term that makes sense only with an importance ratio.
func (o Objective) needsRatios(field string) error {
	if o.inputs().ratios() {
		return nil
	}
	return fmt.Errorf("%s needs a policy loss with an importance ratio", field)
}

func (i Inputs) ratios() bool { return i&(Behaviour|Ratios|Sequence) != 0 && !i.has(values) }

// inputs returns the surrogate's inputs and those that they imply.
func (o Objective) inputs() Inputs {
	if o.Policy == nil {
		return 0
	}
	i := o.Policy.Inputs()
	if i.has(Ratios) || i.has(Sequence) {
		i |= Behaviour
	}
	return i
}

// DefaultMode is the aggregation that a surrogate's own paper or release trains with: sequence means
// for GSPO, token-mean for the rest.
func DefaultMode(s Surrogate) Mode {
	if d, ok := Declared(s.Name()); ok && d.Aggregation != "" {
		return d.Aggregation
	}
	return TokenMean
}

// NeedsMinibatch reports whether rows can be evaluated only after Prepare has seen the log-probabilities
// of the whole mini-batch: covariance rules and the shrinking sequence mask.
func (o Objective) NeedsMinibatch() bool {
	r, _, _, _ := rule(o.Policy)
	return o.NeedsMarks() && r.Scope != ScopeMicrobatch || o.SequenceMask != nil && o.SequenceMask.Shrink
}

// NeedsMarks reports whether rows need the Marks that Prepare makes. If NeedsMinibatch is false nevertheless,
// prepare each micro-batch separately for its marks and keep the mini-batch's Plan.
func (o Objective) NeedsMarks() bool { return o.inputs().has(Marked) }

// Plan holds what the micro-batches of a mini-batch share. If a batch is spread over ranks, add the ranks'
// denominators.
type Plan struct {
	Policy  Denominator // of the policy loss
	Penalty Denominator // of KL and entropy; differs from Policy only with a shrinking sequence mask
	// Marks holds the tokens that a covariance rule selected, by row; copy them to Row.Marks. nil for other losses.
	Marks [][]int32
}

// Plan counts a mini-batch's denominators. It fails if the objective needs Prepare.
func (o Objective) Plan(masks [][]int32, counts []int32) (Plan, error) {
	if o.NeedsMinibatch() {
		return Plan{}, errors.New("plan objective: it needs the log-probabilities of the whole mini-batch, see Prepare")
	}
	d, err := o.Aggregation.Denominator(masks, counts)
	return Plan{Policy: d, Penalty: d}, err
}

// Prepare plans a mini-batch whose rows carry the current log-probabilities. Only Clip-Cov draws from rng, which
// should be new and seeded: rng and the rows' Group, Sample and Turn decide the draw, whatever the order of the
// rows. rng may be nil for other objectives.
func Prepare[T Float](o Objective, rows []Row[T], rng *rand.Rand) (Plan, error) {
	if err := o.Validate(); err != nil {
		return Plan{}, fmt.Errorf("prepare mini-batch: %w", err)
	}
	masks, kept, counts := make([][]int32, len(rows)), make([][]int32, len(rows)), make([]int32, len(rows))
	for i, r := range rows {
		if err := checkPrepared(r, o.NeedsMinibatch() || o.NeedsMarks()); err != nil {
			return Plan{}, fmt.Errorf("prepare row %d: %w", i, err)
		}
		masks[i], kept[i], counts[i] = r.Mask, r.Mask, r.Count
		if m := o.SequenceMask; m != nil && m.Shrink && !m.Keep(rowMeans(r)) {
			kept[i] = nil
		}
	}
	plan := Plan{}
	var err error
	if plan.Policy, err = o.Aggregation.Denominator(kept, counts); err != nil {
		return Plan{}, err
	}
	if plan.Penalty, err = o.Aggregation.Denominator(masks, counts); err != nil {
		return Plan{}, err
	}
	if o.NeedsMarks() {
		if _, _, draws, ok := rule(o.Policy); !ok || draws && rng == nil {
			return Plan{}, fmt.Errorf(
				"prepare mini-batch: %s needs a covariance rule and a random stream", o.Policy.Name(),
			)
		}
		plan.Marks = selectTokens(o.Policy, rows, rng)
	}
	return plan, nil
}

func checkPrepared[T Float](r Row[T], needed bool) error {
	if !needed {
		return r.checkMask()
	}
	return errors.Join(r.Validate(), r.checkLogProbs())
}
