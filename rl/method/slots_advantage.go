package method

import "slices"

// advantageSlots are the layout that advantages are computed on, the estimators and their variants.
func advantageSlots() []Slot {
	group := params("std", "single_group", "stats", "invalid_penalty")
	return []Slot{
		{
			Name: "layout", Doc: "what one row of the loss is",
			Choices: []Choice{
				{Name: Trajectory, Doc: "a whole trajectory, observations masked", Source: "rStar2, AEPO, SPEAR (mathematics), PRS and VSPO"},
				{Name: Turns, Doc: "one turn: a prompt with the latest turns, and a response that is all the policy's", Source: "ARLArena, SPEAR (agents), GiGPO, EMPG", Needs: []Need{NeedTurnRows}},
			},
		},
		{
			Name: "advantage.name", Doc: "the advantage estimator", Dimension: AdvantageDesign,
			Choices: []Choice{
				{Name: "grpo", Doc: "reward minus the group's mean, over its deviation; with std: false, Dr.GRPO", Source: "GRPO (Shao et al. 2024); Dr.GRPO (Liu et al. 2025)", Params: group},
				{Name: "rloo", Doc: "reward minus the mean of the others in the group", Source: "RLOO (Ahmadian et al. 2024)", Params: params("single_group", "stats", "invalid_penalty")},
				{Name: "opo", Doc: "reward minus the group's mean weighted by length", Source: "OPO (Hao et al. 2025)", Params: params("single_group", "invalid_penalty")},
				{Name: "gpg", Doc: "reward minus the group's mean, scaled up for the rows that have no gradient", Source: "GPG (Chu et al. 2025)", Params: params("single_group", "invalid_penalty", "idle")},
				{Name: "reinforce_pp", Doc: "discounted token returns, whitened over the batch", Source: "REINFORCE++ (Hu 2025)", Params: append(params("returns"), with("gamma", "1")...)},
				{Name: "reinforce_pp_baseline", Doc: "reward minus the group's mean, whitened over the batch's tokens", Source: "REINFORCE++ (Hu 2025), with baseline"},
				{Name: "gae", Doc: "generalised advantage estimation over a critic's values, whitened", Source: "PPO (Schulman et al. 2016, 2017)", Params: append(params("lambda", "returns"), with("gamma", "1")...), Needs: []Need{NeedValues}},
				{Name: "gigpo", Doc: "the episode's advantage in its group, plus ω times the step's among turns in the same anchor state", Source: "GiGPO (Feng et al. 2025); ARLArena S17–S19",
					Params: slices.Concat(group, params("omega", "anchors", "similarity", "autojunk"), with("gamma", "0.95"))},
				{Name: "empg", Doc: "grpo, weighed by a turn's entropy, plus a bonus for clarity of the next turn", Source: "EMPG (Wang et al. 2025); ARLArena S20–S22",
					Params: slices.Concat(group, params("k", "k_prime", "zeta")), Needs: []Need{NeedEntropies}},
			},
		},
		{
			Name: "advantage.anchors", Doc: "which turns of a group share an anchor state",
			Choices: []Choice{
				{Name: "exact", Doc: "equal observations", Source: "GiGPO"},
				{Name: "similar", Doc: "observations like the first of a cluster", Source: "GiGPO's released code; Ratcliff and Obershelp", Params: params("similarity", "autojunk")},
			},
		},
		switchSlot("advantage.entropy_aware", "each token's advantage times 1 + weight·z of its entropy", "AEPO eq 11", AdvantageDesign, NeedEntropies),
	}
}
