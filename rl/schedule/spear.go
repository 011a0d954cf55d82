package schedule

// SPEAR's curriculum (section 4.2; A.2, Table 8): self-imitation is warmed up by
// γ(t) = ½(1 − cos(πt/T_warm)) while the tool reward is decayed by μ(t) = ½(cos(πt/T_decay) + 1),
// t being the global training step. Departures: the released agent scripts define T_warm = 100
// for ALFWorld without passing it on, so that 200 applies; the paper's value is taken here.

import "fmt"

// Curriculum holds the two lengths of SPEAR's curriculum. The zero value is training without it:
// γ = 1 and μ = 1 at every step.
type Curriculum struct {
	WarmSteps  int // T_warm
	DecaySteps int // T_decay
}

// The paper's curricula.
var (
	SPEARALFWorld = Curriculum{WarmSteps: 100, DecaySteps: 200}
	SPEARWebShop  = Curriculum{WarmSteps: 200, DecaySteps: 200}
	SPEARMath     = Curriculum{WarmSteps: 300, DecaySteps: 200}
	SPEARSokoban  = Curriculum{WarmSteps: 100, DecaySteps: 200}
)

// Validate reports the first bad field.
func (c Curriculum) Validate() error {
	if c.WarmSteps < 0 {
		return fmt.Errorf("warm_steps must not be negative, got %d", c.WarmSteps)
	}
	if c.DecaySteps < 0 {
		return fmt.Errorf("decay_steps must not be negative, got %d", c.DecaySteps)
	}
	return nil
}

// Gamma returns γ(t) of [0, 1], the weight of the self-imitation term.
func (c Curriculum) Gamma(step int) float64 { return Ramp{CosineRise, c.WarmSteps}.At(step) }

// Mu returns μ(t) of [0, 1], the weight of the tool reward.
func (c Curriculum) Mu(step int) float64 { return Ramp{CosineFall, c.DecaySteps}.At(step) }
