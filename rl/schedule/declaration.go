package schedule

import (
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Declarations lists the schedules that recipes can name, in the order of the documents. A new schedule is one more
// line here; its settings say what it does at a step.
func Declarations() []choice.Choice { return slices.Clone(declarations) }

var declarations = []choice.Choice{
	gammaHorizon,
	muHorizon,
	stages,
}
