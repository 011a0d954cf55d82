package method

import (
	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/rl/schedule"
)

// ruleChoices are the resampling rules that rl/resample declares.
func ruleChoices() []choice.Choice { return choices(resample.Rules()) }

// filterChoices are the filters that rl/resample declares.
func filterChoices() []choice.Choice { return choices(resample.Filters()) }

// resampleSlots are what is sampled again, left out, or masked.
func resampleSlots() []Slot {
	return append(switchSlots("resample", ruleChoices()), switchSlots("filters", filterChoices())...)
}

// stepSlots are what reaches over several steps.
func stepSlots() []Slot {
	out := []Slot{
		{
			Name: "replay.recalibrate", Doc: "the advantage of a replayed row",
			Choices: []Choice{
				{
					Name: "p50", Doc: "its reward minus the median of the latest group means",
					Source: "SPEAR eqs 6–8, Algorithm 1", Needs: []Need{choice.NeedReplay},
				},
				{
					Name: "decay", Doc: "the advantage that it was collected with, times a constant",
					Source: "SPEAR's released code", Params: choice.Reading("decay"), Needs: []Need{choice.NeedReplay},
				},
			},
		},
		{
			Name: "replay.order", Doc: "how the replayed rows and the step's own enter the update",
			Choices: []Choice{
				{
					Name: "sequential", Doc: "the optimiser steps on the replayed rows follow those on the step's own",
					Source: "SPEAR's released code",
				},
				{
					Name:   "joint",
					Doc:    "each optimiser step is on both: the sum of the two losses, each with its own denominators",
					Source: "SPEAR eq 11",
				},
			},
		},
	}
	return append(out, switchSlots("schedule", schedule.Declarations())...)
}
