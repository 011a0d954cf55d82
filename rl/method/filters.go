package method

import "github.com/ropewalk/ropewalk/rl/choice"

// Filters take rows out of the loss. Their rewards stay in the statistics of their groups.
type Filters struct {
	// Params say by name which filters are on: true, or the settings of a filter that has parameters. Each filter
	// declares itself in rl/resample.
	Params choice.Params `params:"filters"`
}
