package method

import (
	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/reward"
)

// rewardChoices are the rewards that rl/reward declares.
func rewardChoices() []choice.Choice { return choices(reward.Declarations()) }

// rewardSlots are what a trajectory is worth.
func rewardSlots() []Slot {
	return []Slot{
		declaredSlot("reward.name", "the reward", "", rewardChoices()),
		{
			Name: "reward.judge", Doc: "who compares a long answer with the reference",
			Choices: []Choice{
				{Name: "exact", Doc: "the normalised texts are equal", Source: "SQuAD"},
				{Name: JudgeServer, Doc: "a language model's Match or Mismatch (section judge)", Source: "PRS eq 14"},
			},
		},
		switchSlot("reward.overlong", "a penalty that grows towards the limit of tokens", "DAPO eq 13", ""),
	}
}
