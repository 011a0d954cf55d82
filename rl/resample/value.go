package resample

import (
	"fmt"

	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/rl/choice"
)

var vspo = Rule{Brief: func(any) string { return "VSPO" }, Choice: choice.Choice{
	Name: "vspo", Doc: "groups without variance give their place to informative ones", Source: "VSPO eqs 16–21",
	Field: "Value-based Sampling Policy Optimization: groups without variance give their place to informative ones; " +
		"null or absent = off",
	Dimension: choice.DynamicFiltering,
	Settings:  VSPO(advantage.DefaultVSPO),
}}

// VSPO holds the settings of Value-based Sampling Policy Optimization.
type VSPO struct {
	Alpha       float64 `json:"alpha" min:"1" max:"1000" doc:"smoothing: the weight of a group taken N times is α − (α − 1)/N"`
	Temperature float64 `json:"temperature" above:"0" max:"1000" doc:"of the softmax over value scores that places are drawn from"`
	MinVariance float64 `json:"min_variance" above:"0" max:"1000000" doc:"a group whose reward variance (population) is smaller is dropped"`
	// The ablations of the paper's Tables 5 and 8.
	Draws   advantage.VSPODraws   `json:"draws" enum:"value|uniform" quiet:"true" doc:"places are drawn by value scores, or all groups alike"`
	Weights advantage.VSPOWeights `json:"weights" enum:"smoothed|count" quiet:"true" doc:"weight of a group taken N times: smoothed by alpha, or N (no clip)"`
}

// Link returns the rule as ValueResampling.
func (v VSPO) Link(Sampling) Link { return ValueResampling{advantage.VSPO(v)} }

// ValueResampling drops groups without variance and repeats other groups instead, by value score:
//
//	V_x = (R_max − μ_x)·σ²_x,  p = softmax(V/T) over kept prompts,  N_x = 1 + draws,
//	ω_x = α − (α−1)/N_x
//
// Source: VSPO eqs 16–21. Departures: none; draws that ignore V, and ω_x = N_x, are options. ω applies once for each
// prompt (see the package's glossary). If no group or every group lacks variance, the batch is kept whole, with weight
// 1.
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
	groups, rewards := s.groupsWithRows()
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
