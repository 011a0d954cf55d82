package loss

import (
	"math"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// The critic's clipped loss (Schulman et al. 2017, section 5, in the form of the released baselines):
//
//	ℓ = ½·max((V − ret)², (clip(V, V_old − c, V_old + c) − ret)²)
//
// The cotangent is V − ret if the first square is at least as large as the second. Otherwise it is 0, for the
// clipped value is constant. Older forks have no factor ½: see NoHalf.

var valueTerm = Term{Choice: choice.Choice{
	Name: "value", Doc: "a critic, with its clipped loss", Source: "PPO (Schulman et al. 2017)",
	Field: "the critic; null or absent = none", Settings: ValueSettings{Coefficient: 1, Clip: 0.5, LR: 1e-5},
	Needs: []choice.Need{choice.NeedValues},
}}

// ValueSettings are those of a recipe's critic, whose loss is
// Coefficient·½·agg(max((V−R)², (clip(V, V_old ± Clip) − R)²)).
type ValueSettings struct {
	Coefficient float64 `json:"coefficient" above:"0" max:"1000" doc:"weight of the value loss"`
	Clip        float64 `json:"clip" above:"0" max:"1000" doc:"how far a value moves from its old one before its loss stops falling"`
	LR          float64 `json:"lr" above:"0" max:"10" doc:"learning rate of the critic; everything else is the policy's optimizer"`
}

// ValueClip is the critic's loss.
type ValueClip struct {
	Clip   float64 // c > 0, or 0 for no clip
	NoHalf bool    // leave the factor ½ out
}

// ValueRow is one trajectory as the critic's loss sees it. All slices are equally long.
type ValueRow[T Float] struct {
	Values  []T // of the current critic
	Old     []T // of the critic before the first update; not read without a clip
	Returns []T
	Mask    []int32
	Count   int32 // N ≥ 1: the row enters N times
}

// Name is "value_clip".
func (v ValueClip) Name() string { return "value_clip" }

// Validate reports the first bad field.
func (v ValueClip) Validate() error { return checkNotNegative("value_clip", v.Clip) }

// Inputs says that the rows hold values instead of log-probabilities.
func (v ValueClip) Inputs() Inputs { return Behaviour | values }

// Bounds returns none: ratios have no bounds.
func (v ValueClip) Bounds() Bounds { return Bounds{} }

// Evaluate writes the block's losses and d(loss)/d(value), with the values in LogProbs, the old ones
// in Old and the returns in Advantages.
func (v ValueClip) Evaluate(b *Block) {
	half := 0.5
	if v.NoHalf {
		half = 1
	}
	width := v.Clip
	if width == 0 {
		width = math.Inf(1)
	}
	valueLoop(b.LogProbs, b.Old, b.Advantages, width, half, b.Loss, b.Coef)
}

// Clipped reports whether the clipped square is the greater one, so that the value has no gradient
// (verl's critic/vf_clipfrac counts these). Without a clip it is always false.
func (v ValueClip) Clipped(value, old, ret float64) bool {
	if v.Clip == 0 {
		return false
	}
	d, c := value-ret, min(max(value, old-v.Clip), old+v.Clip)-ret
	return c*c > d*d
}

// EvaluateValues returns the critic's loss of a micro-batch under its mini-batch's denominator; Cotangents holds
// d(loss)/d(value). The result is valid until the evaluator's next call.
func (e *Evaluator[T]) EvaluateValues(v ValueClip, rows []ValueRow[T], d Denominator) (Result[T], error) {
	e.criticRows = e.criticRows[:0]
	for _, r := range rows {
		if v.Clip == 0 {
			r.Old = r.Values
		}
		e.criticRows = append(
			e.criticRows, Row[T]{LogProbs: r.Values, Old: r.Old, Advantages: r.Returns, Mask: r.Mask, Count: r.Count},
		)
	}
	if e.critic != Surrogate(v) {
		e.critic = v
	}
	return e.Evaluate(Objective{Policy: e.critic}, e.criticRows, Plan{Policy: d, Penalty: d})
}

// valueLoop is the critic's clipped square.
func valueLoop(v, old, ret []float64, width, half float64, loss, coef []float64) {
	if wide != nil {
		wide.value(v, old, ret, width, half, loss, coef)
		return
	}
	for t, x := range v {
		d := x - ret[t]
		c := min(max(x, old[t]-width), old[t]+width) - ret[t]
		if d*d >= c*c {
			loss[t], coef[t] = half*d*d, 2*half*d
		} else {
			loss[t], coef[t] = half*c*c, 0
		}
	}
}
