package method

// Replay is SPEAR's buffer of rows with positive advantages, which are recalibrated (Algorithm 1).
type Replay struct {
	Size            int     `json:"size" default:"2048" min:"1" max:"10000000" doc:"N_D: rows that make the buffer full"`
	Baselines       int     `json:"baselines" default:"10240" min:"1" max:"10000000" doc:"N_DR: group means kept for the baseline P50"`
	Recalibrate     string  `json:"recalibrate" default:"p50" doc:"advantage of a replayed row"`
	Decay           float64 `json:"decay" above:"0" max:"1" doc:"factor on the advantage that the row was collected with"`
	FullRule        string  `json:"full_rule" default:"size" enum:"size|p50_1.5x" doc:"full at size rows, or at 1.5 × size rows whose reward is above P50 (as released)"`
	MaxAge          int     `json:"max_age" default:"0" min:"0" max:"1000000" doc:"steps after which a row leaves the buffer; 0 = never"`
	RequireToolCall bool    `json:"require_tool_call" default:"false" doc:"only trajectories with a tool call enter"`
	Order           string  `json:"order" default:"sequential" doc:"how the replayed rows and the step's own enter the update"`
	Coefficient     float64 `json:"coefficient" default:"1" above:"0" max:"1000" doc:"weight of the replay loss, times γ of the schedule"`
	ClipLow         float64 `json:"clip_low" default:"0.2" above:"0" max:"1" doc:"the ratio to the policy that collected the row is clipped below 1 − clip_low"`
	ClipHigh        float64 `json:"clip_high" default:"0.28" above:"0" max:"100" doc:"… and above 1 + clip_high"`
	CovRatio        float64 `json:"cov_ratio" default:"0.02" min:"0" max:"1" doc:"share of the tokens taken out for their covariance; 0 = none"`
	CovLow          float64 `json:"cov_low" default:"2" min:"-1000000" max:"1000000" doc:"ω_lb: tokens with more covariance than this …"`
	CovHigh         float64 `json:"cov_high" default:"60" min:"-1000000" max:"1000000" doc:"ω_ub: … and less than this may be taken out"`
	CovScope        string  `json:"cov_scope" default:"minibatch" enum:"minibatch|group" quiet:"true" doc:"the tokens that covariances are centred over and drawn from: of the mini-batch; or, as SPEAR's equations 15 and 16 have it, of the same position in the rows of a group, with a share of cov_ratio of each row and both bounds included"`
}
