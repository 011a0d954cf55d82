package recipes

// Replay is SPEAR's self-imitation: trajectories that were better than their groups are kept, judged
// again by the median of the latest group means once there are enough of them, and learnt from once.
type Replay struct {
	Capacity        int     `json:"capacity" default:"2048" min:"1" max:"10000000" doc:"N_D: trajectories that make the buffer full"`
	Baselines       int     `json:"baselines" default:"10240" min:"1" max:"10000000" doc:"N_DR: latest group means, whose median P50 is the baseline of what is learnt from again"`
	FullRule        string  `json:"full_rule" default:"size" enum:"size|p50_1.5x" doc:"full at capacity trajectories (size), or at more than 1.5 × capacity with a reward above P50 (p50_1.5x, as released)"`
	MaxAge          int     `json:"max_age" default:"0" min:"0" max:"1000000" doc:"steps after which a trajectory leaves the buffer; 0 = never"`
	RequireToolCall bool    `json:"require_tool_call" default:"false" doc:"only trajectories with a tool call enter"`
	Order           string  `json:"order" default:"sequential" enum:"sequential|joint" doc:"the optimiser steps on what is learnt from again follow those on the step's own batch (sequential), or both are one loss (joint, not built yet)"`
	GammaHorizon    int     `json:"gamma_horizon" default:"0" min:"0" max:"1000000" doc:"T_warm: at step t the loss on what is learnt from again has the weight γ = ½(1 − cos(πt/T)), and 1 after step T; 0 = 1 throughout"`
	ClipLow         float64 `json:"clip_low" default:"0.2" above:"0" max:"1" doc:"the ratio to the policy that wrote the trajectory is clipped below 1 − clip_low"`
	ClipHigh        float64 `json:"clip_high" default:"0.28" above:"0" max:"100" doc:"… and above 1 + clip_high"`
	CovRatio        float64 `json:"cov_ratio" default:"0.02" min:"0" max:"1" doc:"share of a mini-batch's tokens that is drawn and taken out of the loss for its covariance (Clip-Cov); 0 = none"`
	CovLow          float64 `json:"cov_low" default:"2" min:"-1000000" max:"1000000" doc:"ω_lb: tokens with more covariance than this …"`
	CovHigh         float64 `json:"cov_high" default:"60" min:"-1000000" max:"1000000" doc:"ω_ub: … and less than this may be drawn"`
}

// ReplayJoint is the order in which both batches are one loss.
const ReplayJoint = "joint"

var replayCombinations = []combination{
	{
		at: "replay.order", only: Calc, doc: "sequential: a joint loss is not built yet",
		check: func(r *Recipe) string {
			return unless(r.Replay == nil || r.Replay.Order != ReplayJoint, "must be sequential: a joint loss is not built yet")
		},
	},
	{
		at: "replay.cov_low", reads: []string{"replay.cov_high", "replay.cov_ratio"}, only: Calc, doc: "below cov_high, unless cov_ratio is 0",
		check: func(r *Recipe) string {
			p := r.Replay
			if p == nil || p.CovRatio == 0 {
				return ""
			}
			return unless(p.CovLow < p.CovHigh, "must be < replay.cov_high (%s), or no token lies between, got %s", short(p.CovHigh), short(p.CovLow))
		},
	},
}
