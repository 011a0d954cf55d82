package method

// Resample is the chain Dynamic → RejectEqual → LowVariance → VSPO → RoC: the first runs while
// sampling, the next three choose among groups, the last inside each group.
type Resample struct {
	RoC         *RoC         `json:"roc" doc:"Resample-on-Correct: keep cleaner positives and some negatives of each group; null or absent = off"`
	VSPO        *VSPO        `json:"vspo" doc:"variance-based resampling: groups without variance give their place to informative ones; null or absent = off"`
	Dynamic     *Dynamic     `json:"dynamic" only:"trained" doc:"DAPO's dynamic sampling: sample again until enough groups are informative; null or absent = off"`
	RejectEqual bool         `json:"reject_equal" default:"false" quiet:"true" doc:"drop groups whose rewards are all equal"`
	LowVariance *LowVariance `json:"low_variance" doc:"keep the groups whose rewards vary most; null or absent = off"`
}

// RoC is Resample-on-Correct.
type RoC struct {
	Keep        int    `json:"keep" required:"true" min:"1" max:"1024" doc:"trajectories kept of each group"`
	Counts      string `json:"counts" default:"paper" enum:"paper|release" doc:"how many negatives: half of them (paper), or in proportion (release)"`
	Select      string `json:"select" default:"weighted" enum:"weighted|lowest" doc:"positives: drawn with weight 1/penalty (weighted), or the lowest penalties first (lowest)"`
	MinPositive int    `json:"min_positive" default:"2" min:"0" max:"1024" doc:"positives kept at least, where there are so many"`
	MinNegative int    `json:"min_negative" default:"2" min:"0" max:"1024" doc:"negatives kept at least, where there are so many"`
}

// VSPO is variance-based resampling with smoothing.
type VSPO struct {
	Alpha       float64 `json:"alpha" default:"2" min:"1" max:"1000" doc:"smoothing: the weight of a group taken N times is α − (α − 1)/N"`
	Temperature float64 `json:"temperature" default:"0.1" above:"0" max:"1000" doc:"of the softmax over value scores that places are drawn from"`
	MinVariance float64 `json:"min_variance" default:"1e-6" above:"0" max:"1000000" doc:"a group whose reward variance (population) is smaller is dropped"`
}

// Dynamic is DAPO's dynamic sampling.
type Dynamic struct {
	Tries          int    `json:"tries" default:"3" min:"1" max:"1000" doc:"batches sampled at most for one step; the last is filled up with groups of equal rewards"`
	ColdStartSteps int    `json:"cold_start_steps" default:"0" min:"0" max:"1000000" doc:"first steps that take every group"`
	Refill         string `json:"refill" default:"new" enum:"new|same" doc:"a further batch is of new prompts, or of the same ones"`
}

// RefillSame is the refill that samples a step's prompts anew.
const RefillSame = "same"

// LowVariance keeps the share of groups whose rewards vary most (SPEAR, RAGEN).
type LowVariance struct {
	Keep    float64 `json:"keep" default:"0.75" above:"0" max:"1" doc:"share of the groups kept, rounded down"`
	Std     string  `json:"std" default:"sample" enum:"sample|population" doc:"the standard deviation that orders groups"`
	Reverse bool    `json:"reverse" default:"false" doc:"keep those that vary least"`
}
