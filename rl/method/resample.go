package method

import (
	"reflect"

	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/resample"
)

// Resample chooses which groups and rows of a step enter the update: the rules run in the order in which rl/resample
// lists them.
type Resample struct {
	// Params say by name which rules are on: true, or the settings of a rule that has parameters. Each rule declares
	// itself in rl/resample.
	Params choice.Params `params:"resample"`
}

// has reports whether a rule is on.
func (r Resample) has(rule string) bool {
	v := reflect.ValueOf(r.Params[rule])
	return v.IsValid() && !v.IsZero()
}

// RoC returns the settings of resample-on-correct, or nil.
func (r Resample) RoC() *resample.RoC { return choice.Section[resample.RoC](r.Params, "roc") }

// VSPO returns the settings of value-based sampling, or nil.
func (r Resample) VSPO() *resample.VSPO { return choice.Section[resample.VSPO](r.Params, "vspo") }

// Dynamic returns the settings of dynamic sampling, or nil.
func (r Resample) Dynamic() *resample.DynamicSampling {
	return choice.Section[resample.DynamicSampling](r.Params, "dynamic")
}

// LowVariance returns the settings of the filter for groups of low variance, or nil.
func (r Resample) LowVariance() *resample.LowVariance {
	return choice.Section[resample.LowVariance](r.Params, "low_variance")
}

// RejectEqual reports whether groups whose rewards are all equal are dropped.
func (r Resample) RejectEqual() bool { return r.Params["reject_equal"] == true }
