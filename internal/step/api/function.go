package api

import "github.com/ropewalk/ropewalk/schema"

// FunctionInput asks for the results of a user's reward function on one shard's trajectories.
type FunctionInput struct {
	Scope
	Shard        int        `json:"shard"`
	Trajectories schema.Ref `json:"trajectories"`
	Prompts      schema.Ref `json:"prompts"`
}

// Called counts one shard's results.
type Called struct {
	Done
	Scored int `json:"scored"` // trajectories
	// Excluded counts the trajectories that the function gave no result for.
	Excluded int `json:"excluded,omitempty"`
	// Edited names the files of the function's code that were edited since the run was prepared.
	Edited string `json:"edited,omitempty"`
}
