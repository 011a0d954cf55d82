package resample

import (
	"fmt"

	"github.com/ropewalk/ropewalk/rl/advantage"
)

// ValueResampling drops groups without variance and repeats others in their place by value score:
//
//	V_x = (R_max − μ_x)·σ²_x,  p = softmax(V/T) over kept prompts,  N_x = 1 + draws,
//	ω_x = α − (α−1)/N_x
//
// Source: VSPO eqs 17–21. No departures; ω applies once a prompt (see the package's glossary). It
// keeps a batch whole, with weight 1, if no group or every group lacks variance.
type ValueResampling struct{ advantage.VSPO }

// Validate reports the first bad field.
func (v ValueResampling) Validate() error {
	if err := v.VSPO.Validate(); err != nil {
		return fmt.Errorf("vspo.%w", err)
	}
	return nil
}

func (ValueResampling) name() string { return "VSPO" }

func (ValueResampling) draws() bool { return true }

func (v ValueResampling) apply(s *step) {
	groups, rewards := s.alive()
	r := v.Resample(rewards, s.source(LabelVSPO, "").Float64)
	s.out.Resampled, s.out.RewardMax = r.Active, r.RMax
	for i, g := range groups {
		g.flat = !r.Prompts[i].Kept
		for k := g.from; k < g.to; k++ {
			if row := &s.out.Rows[k]; row.Kept {
				row.Count, row.Weight, row.ValueScore = r.Prompts[i].N, r.Prompts[i].Omega, r.Prompts[i].Value
			}
		}
		if r.Active && g.flat {
			s.out.dropAll(*g, ZeroVariance)
		}
	}
}
