package method

import (
	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/rl/choice"
)

// estimatorChoices are the estimators that rl/advantage declares.
func estimatorChoices() []choice.Choice { return choices(advantage.Declarations()) }

// estimators names the estimators of which something holds, in the order of the slot table.
func estimators(has func(advantage.Declaration) bool) []string {
	var names []string
	for _, d := range advantage.Declarations() {
		if has(d) {
			names = append(names, d.Name)
		}
	}
	return names
}

// advantageSlots are the layout that advantages are computed on, the estimators and their variants.
func advantageSlots() []Slot {
	return []Slot{
		{
			Name: "layout", Doc: "what one row of the loss is",
			Choices: []Choice{
				{
					Name: Trajectory, Doc: "a whole trajectory, observations masked",
					Source: "rStar2, AEPO, SPEAR (mathematics), PRS and VSPO",
				},
				{
					Name:   Turns,
					Doc:    "one turn: a prompt with the latest turns, and a response that is all the policy's",
					Source: "ARLArena, SPEAR (agents), GiGPO, EMPG", Needs: []Need{choice.NeedTurnRows},
				},
			},
		},
		declaredSlot("advantage.name", "the advantage estimator", AdvantageDesign, estimatorChoices()),
		{
			Name: "advantage.anchors", Doc: "which turns of a group share an anchor state",
			Choices: []Choice{
				{Name: advantage.AnchorsExact, Doc: "equal observations", Source: "GiGPO"},
				{
					Name: advantage.AnchorsSimilar, Doc: "observations like the first of a cluster",
					Source: "GiGPO's released code; Ratcliff and Obershelp",
					Params: choice.Reading("similarity", "autojunk"),
				},
			},
		},
		switchSlot(
			"advantage.entropy_aware", "each token's advantage times 1 + weight·z of its entropy", "AEPO eq 11",
			AdvantageDesign, choice.NeedEntropies,
		),
	}
}
