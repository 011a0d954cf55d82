package method

// resampleSlots are what is sampled again, left out, or masked.
func resampleSlots() []Slot {
	return []Slot{
		switchSlot("resample.dynamic", "sample again until enough groups are informative", "DAPO (Yu et al. 2025); ARLArena §2", DynamicFiltering),
		switchSlot("resample.reject_equal", "groups whose rewards are all equal are dropped", "rStar2's released code", DynamicFiltering),
		switchSlot("resample.low_variance", "the groups whose rewards vary least are dropped", "RAGEN (Wang et al. 2025); SPEAR §4.3", DynamicFiltering),
		switchSlot("resample.vspo", "groups without variance give their place to informative ones", "VSPO eqs 17–21", DynamicFiltering),
		switchSlot("resample.roc", "cleaner positives and some negatives of each group", "rStar2 §2.2, GRPO-RoC", DynamicFiltering),
		switchSlot("filters.overlong", "rows at their limit of tokens are masked", "DAPO; SPEAR §4.3", ""),
		switchSlot("filters.void_turns", "trajectories with a turn that neither acts nor answers are masked", "SimpleTIR (Xue et al. 2025); SPEAR §4.3", ""),
		switchSlot("filters.repetition", "rows that repeat themselves are masked", "SPEAR's released code", ""),
		switchSlot("filters.unreadable", "rows with bytes that are no characters are masked", "SPEAR's released code", ""),
	}
}

// stepSlots are what reaches over several steps.
func stepSlots() []Slot {
	return []Slot{
		{
			Name: "replay.recalibrate", Doc: "the advantage of a replayed row",
			Choices: []Choice{
				{Name: "p50", Doc: "its reward minus the median of the latest group means", Source: "SPEAR eqs 6–8, Algorithm 1", Needs: []Need{NeedReplay}},
				{Name: "decay", Doc: "the advantage that it was collected with, times a constant", Source: "SPEAR's released code", Params: params("decay"), Needs: []Need{NeedReplay}},
			},
		},
		{
			Name: "replay.order", Doc: "how the replayed rows and the step's own enter the update",
			Choices: []Choice{
				{Name: "sequential", Doc: "the optimiser steps on the replayed rows follow those on the step's own", Source: "SPEAR's released code"},
				{Name: "joint", Doc: "each optimiser step is on both: the sum of the two losses, each with its own denominators", Source: "SPEAR eq 13"},
			},
		},
		switchSlot("schedule.gamma_horizon", "the replay loss's weight rises", "SPEAR eq 13", ""),
		switchSlot("schedule.mu_horizon", "the tool term's weight falls", "SPEAR eq 15", ""),
		switchSlot("schedule.stages", "settings change at some steps", "rStar2 §4.2", ""),
	}
}
