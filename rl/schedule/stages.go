package schedule

// Multi-stage training (rStar2-Agent section 4.3): stage 1 with responses of 8K tokens up to step 300, stage 2 with 12K
// up to step 385, stage 3 with 12K on the problems that the policy at step 385 did not solve in all of 8 samples, its
// optimizer reset and its reference refreshed, up to step 510. Departures: the step count continues through the stages,
// so a stage does not restart the learning-rate schedule or its warm-up. The run's own rollouts decide which problems
// all samples solved; there is no evaluation at the beginning of a stage.

import (
	"fmt"

	"github.com/ropewalk/ropewalk/rl/choice"
)

var stages = choice.Choice{
	Name: "stages", Doc: "settings change at some steps", Source: "rStar2 §4.3",
	Field: "what changes at some steps, in order; absent = nothing", Settings: Stages{},
	Rules: []choice.Rule{{
		Param: "stages", Doc: "from_step rises from stage to stage",
		Fault: func(p choice.Params) string {
			list, _ := p["stages"].([]Stage)
			return Stages{list}.fault()
		},
	}},
}

// Stages are ranges of steps with the same settings, in order.
type Stages struct {
	List []Stage `json:"stages"`
}

// Stage changes settings from a step on. Settings that it leaves out do not change.
type Stage struct {
	FromStep         int     `json:"from_step" required:"true" min:"1" max:"1000000" doc:"first step of the stage"`
	MaxTokens        int     `json:"max_tokens" default:"0" min:"0" max:"1048576" doc:"rollout.max_tokens from now on, also the loss's horizon; 0 = as before"`
	MaxTurnTokens    int     `json:"max_turn_tokens,omitempty" default:"0" min:"0" max:"1048576" quiet:"true" doc:"rollout.max_turn_tokens from now on; 0 = as before"`
	LR               float64 `json:"lr" default:"0" min:"0" max:"10" doc:"optimizer.lr from now on (no second warm-up, and decay goes on); 0 = as before"`
	Problems         string  `json:"problems" default:"same" enum:"same|unsolved" doc:"the prompts as before, or without those that all samples of the run's earlier steps have solved"`
	Samples          int     `json:"samples" default:"8" min:"1" max:"1024" doc:"least number of samples, all of them right, for a problem to count as solved"`
	ResetOptimizer   bool    `json:"reset_optimizer" default:"false" doc:"the stage's first update starts without the optimiser's moments"`
	RefreshReference bool    `json:"refresh_reference" default:"false" doc:"the policy at the start of the stage becomes the reference"`
}

// Begun returns the stages that have begun by a step.
func (s Stages) Begun(step int) []Stage {
	n := 0
	for n < len(s.List) && s.List[n].FromStep <= step {
		n++
	}
	return s.List[:n]
}

// fault says which stage does not begin after the one before; "" = none.
func (s Stages) fault() string {
	for i, stage := range s.List[min(1, len(s.List)):] {
		if before := s.List[i].FromStep; stage.FromStep <= before {
			return fmt.Sprintf("from_step must rise from stage to stage, got %d after %d", stage.FromStep, before)
		}
	}
	return ""
}
