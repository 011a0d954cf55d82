package policy

// Role names one of the models that a sampler or trainer holds.
type Role string

// The roles of the published algorithms. The critic is a model whose output head is replaced by a value head: it
// returns values, and neither generates nor returns log-probabilities. If its output head is a separate matrix, its
// checkpoints keep that matrix as it was loaded, and it does not train.
const (
	RolePolicy    Role = "policy"
	RoleReference Role = "reference"
	RoleCritic    Role = "critic"
)

// State describes the model that is loaded under a role.
type State struct {
	Digest string // CheckpointDigest of what was loaded or last saved; "" after a Step, for a new critic or when empty
	Step   int64  // optimiser steps taken
	Params int64
}

// Description names everything except the inputs that determines the rounding of a sampler or trainer.
type Description struct {
	Device  string `json:"device"`
	BLAS    string `json:"blas"`
	Threads int    `json:"threads"`
	// Advice says how to get a faster one, or is empty.
	Advice string `json:"advice,omitempty"`
}
