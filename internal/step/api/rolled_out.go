package api

import "github.com/ropewalk/ropewalk/schema"

// Rollout names the stage manifests of a step's sharded stages that later stages read.
type Rollout struct {
	Prompts schema.Ref   // zero if the step's prompts were committed before its shards
	Turns   []schema.Ref // of the rollout, one for each turn
	Rewards schema.Ref
}

// RolledOut finds these manifests among those that CommitStages has committed.
func RolledOut(committed []StageRef) (out Rollout) {
	for _, c := range committed {
		switch c.Stage {
		case StagePrompts:
			out.Prompts = c.Ref
		case StageRollout:
			out.Turns = append(out.Turns, c.Ref)
		case StageReward:
			out.Rewards = c.Ref
		}
	}
	return out
}
