package method

// Schedule is what changes with the step alone.
type Schedule struct {
	GammaHorizon int     `json:"gamma_horizon" default:"0" min:"0" max:"1000000" doc:"T_warm: the replay loss's weight rises over so many steps, γ = ½(1 − cos(πt/T)); 0 = it is 1 throughout"`
	MuHorizon    int     `json:"mu_horizon" default:"0" min:"0" max:"1000000" doc:"T_decay: the tool term's weight falls over so many steps, μ = ½(1 + cos(πt/T)); 0 = it is 1 throughout"`
	Stages       []Stage `json:"stages" doc:"what changes at some steps, in order; absent = nothing"`
}

// Stage changes settings from a step on. What it leaves out stays as it was before.
type Stage struct {
	FromStep         int     `json:"from_step" required:"true" min:"1" max:"1000000" doc:"first step of the stage"`
	MaxTokens        int     `json:"max_tokens" default:"0" min:"0" max:"1048576" doc:"rollout.max_tokens from now on, also the loss's horizon; 0 = as before"`
	LR               float64 `json:"lr" default:"0" min:"0" max:"10" doc:"optimizer.lr from now on (no second warm-up, and decay goes on); 0 = as before"`
	Problems         string  `json:"problems" default:"same" enum:"same|unsolved" doc:"the prompts as before, or without those that all samples of the run's earlier steps have solved"`
	Samples          int     `json:"samples" default:"8" min:"1" max:"1024" doc:"so many samples or more tell that a problem is solved"`
	ResetOptimizer   bool    `json:"reset_optimizer" default:"false" doc:"the stage's first update starts without the optimiser's moments"`
	RefreshReference bool    `json:"refresh_reference" default:"false" doc:"the policy of then becomes the reference"`
}
