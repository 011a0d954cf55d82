package schedule

// SPEAR's curriculum (equations 12 and 21; Table 8): self-imitation is warmed up by
// γ(t) = ½(1 − cos(πt/T_warm)) while the tool reward is decayed by μ(t) = ½(cos(πt/T_decay) + 1),
// where t is the global training step. Departures: the released agent scripts define T_warm = 100 for ALFWorld
// without passing it on, so that 200 applies there. The paper's value is used here. The paper writes γ as 1 and μ as 0
// for t > T, which are the values of the cosines at T.

import (
	"math"

	"github.com/ropewalk/ropewalk/rl/choice"
)

var (
	gammaHorizon = choice.Choice{
		Name: "gamma_horizon", Doc: "the replay loss's weight rises", Source: "SPEAR eq 12", Settings: Gamma{},
		Field: "T_warm: steps over which the replay loss's weight rises, γ = ½(1 − cos(πt/T)); 0 = it is always 1",
	}
	muHorizon = choice.Choice{
		Name: "mu_horizon", Doc: "the tool term's weight falls", Source: "SPEAR eq 21", Settings: Mu{},
		Field: "T_decay: steps over which the tool term's weight falls, μ = ½(1 + cos(πt/T)); 0 = it is always 1",
	}
)

// Gamma is the weight of the self-imitation term. The zero value is 1 at every step.
type Gamma struct {
	Horizon int `json:"gamma_horizon" min:"0" max:"1000000"` // T_warm
}

// At returns γ(t) in [0, 1].
func (g Gamma) At(step int) float64 {
	if g.Horizon <= 0 {
		return 1
	}
	return (1 - math.Cos(math.Pi*covered(step, g.Horizon))) / 2
}

// Mu is the weight of the tool reward. The zero value is 1 at every step.
type Mu struct {
	Horizon int `json:"mu_horizon" min:"0" max:"1000000"` // T_decay
}

// At returns μ(t) in [0, 1].
func (m Mu) At(step int) float64 {
	if m.Horizon <= 0 {
		return 1
	}
	return (1 + math.Cos(math.Pi*covered(step, m.Horizon))) / 2
}

// covered is the share of a horizon that lies before a step, in [0, 1].
func covered(step, horizon int) float64 {
	if step >= horizon {
		return 1
	}
	return float64(max(step, 0)) / float64(horizon)
}
