package method

import (
	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/schedule"
)

// Schedule holds the settings that depend on the step alone. A nil Schedule has none.
type Schedule struct {
	// Params are the schedules by name. Each declares itself in rl/schedule.
	Params choice.Params `params:"schedule"`
}

// GammaHorizon is the number of steps over which the weight of the replay loss rises; 0 = it is always 1.
func (s *Schedule) GammaHorizon() int { return scheduled[int](s, "gamma_horizon") }

// MuHorizon is the number of steps over which the weight of the tool term falls; 0 = it is always 1.
func (s *Schedule) MuHorizon() int { return scheduled[int](s, "mu_horizon") }

// Stages lists what changes at some steps, in order.
func (s *Schedule) Stages() []schedule.Stage { return scheduled[[]schedule.Stage](s, "stages") }

// Begun lists the stages that have begun by a step.
func (s *Schedule) Begun(step int) []schedule.Stage {
	return schedule.Stages{List: s.Stages()}.Begun(step)
}

// Unsolved returns the number of samples that decide whether a problem is solved. The step does not draw a problem if
// all of those samples are right. 0 means that the step draws from all problems.
func (s *Schedule) Unsolved(step int) int {
	samples := 0
	for _, stage := range s.Begun(step) {
		if stage.Problems == "unsolved" {
			samples = stage.Samples
		}
	}
	return samples
}

// OptimizerReset returns the first step of the latest stage so far that resets the optimiser, or 0 if no stage does.
func (s *Schedule) OptimizerReset(step int) int {
	first := 0
	for _, stage := range s.Begun(step) {
		if stage.ResetOptimizer {
			first = stage.FromStep
		}
	}
	return first
}

func scheduled[T any](s *Schedule, name string) T {
	var value T
	if s != nil {
		value, _ = s.Params[name].(T)
	}
	return value
}
