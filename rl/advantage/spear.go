package advantage

import (
	"fmt"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// SPEAR's recalibrated advantage (Qin et al. 2025, eqs 7–8): a replayed trajectory was good when it was
// collected. The median of the recent groups' mean rewards decides whether it still is. D_R is a queue with
// one mean reward for each (step, group),
//
//	Ã = R − P50(D_R)             kept iff A_collection > 0 and Ã > 0
//	Ã = w·A_collection           with WeightDecay w
//
// R is the reward as it was stored, with the weights and penalties of the step that collected it. The
// advantage is not divided by a deviation. Departures: KeepZero is the agent release's Ã ≥ 0.
// BaselineQueue is D_R.

// Recalibration is the rule for replayed trajectories; the zero value is the paper's.
type Recalibration struct {
	WeightDecay float64 `min:"0" max:"1"` // w in (0, 1]: Ã = w·A_collection; 0: Ã = R − P50
	KeepZero    bool    // keep Ã = 0
}

// Validate reports the first bad field.
func (r Recalibration) Validate() error { return choice.Check("", r) }

// Collected is one replayed trajectory as it was stored.
type Collected struct {
	Reward    float64
	Advantage float64
}

// Recalibrated is the result for one replayed trajectory.
type Recalibrated struct {
	Advantage float64 // Ã, for every valid token
	Keep      bool
}

// Estimate recalibrates each trajectory against the queue's median, which must exist unless
// WeightDecay is set.
func (r Recalibration) Estimate(collected []Collected, baselines BaselineQueue) ([]Recalibrated, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	p50, ok := baselines.P50()
	if !ok && r.WeightDecay == 0 && len(collected) > 0 {
		return nil, fmt.Errorf("recalibrate: no baseline for %d trajectories", len(collected))
	}
	out := make([]Recalibrated, len(collected))
	for i, c := range collected {
		if !finite(c.Reward) || !finite(c.Advantage) {
			return nil, fmt.Errorf("recalibrate: row %d has reward %g, advantage %g", i, c.Reward, c.Advantage)
		}
		a := c.Reward - p50
		if r.WeightDecay > 0 {
			a = r.WeightDecay * c.Advantage
		}
		out[i] = Recalibrated{Advantage: a, Keep: c.Advantage > 0 && (a > 0 || r.KeepZero && a == 0)}
	}
	return out, nil
}
