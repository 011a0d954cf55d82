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

func scheduled[T any](s *Schedule, name string) T {
	var value T
	if s != nil {
		value, _ = s.Params[name].(T)
	}
	return value
}
