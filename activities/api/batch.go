package api

import "github.com/ropewalk/ropewalk/schema"

// StageParts lists the shard manifests that make one stage.
type StageParts struct {
	Stage string       `json:"stage"`
	Turn  int          `json:"turn"` // −1 if the stage has no turns
	Parts []schema.Ref `json:"parts"`
}

// CommitInput asks for stage manifests, and for the step's head if Head is set.
type CommitInput struct {
	Scope
	Stages []StageParts `json:"stages,omitempty"`
	// Rewards are the reward manifests of a step's shards. Each of them leads, through its inputs, to everything else
	// that the shard has committed. All of it becomes stage manifests, after those of Stages.
	Rewards []schema.Ref `json:"rewards,omitempty"`
	Head    []StageRef   `json:"head,omitempty"`
}

// StageRef is one stage manifest of a step.
type StageRef struct {
	Stage string     `json:"stage"`
	Ref   schema.Ref `json:"ref"`
}

// Committed returns the stage manifests in the requested order. Those of Rewards follow in the order of the stages,
// turn by turn.
type Committed struct {
	Done
	Refs []schema.Ref `json:"refs"`
	// Stages are the same manifests with their stages, if Rewards were given.
	Stages []StageRef `json:"stages,omitempty"`
}

// BatchInput asks for the stages between a step's rollout and its update. The models' stage, logprobs, is not among
// them: a step that needs it asks twice, first with Models, then with the Selection and the Outputs.
type BatchInput struct {
	Scope
	// Commit asks for the stage manifests of the sharded stages; nil if they are committed.
	Commit *CommitInput `json:"commit,omitempty"`
	// Turns and Rewards are stage manifests, and Prompts are the step's prompts. Where Commit finds them, its results
	// take their place.
	Turns   []schema.Ref `json:"turns,omitempty"`
	Rewards schema.Ref   `json:"rewards,omitzero"`
	Prompts schema.Ref   `json:"prompts,omitzero"`
	// Excluded are the shards whose parts the rewards lack.
	Excluded []ExcludedShard `json:"excluded,omitempty"`
	// Selection is the stage manifest of resample; zero asks for that stage.
	Selection schema.Ref `json:"selection,omitzero"`
	// Models ends the activity after the selection, because a model computes token outputs next.
	Models  bool       `json:"models,omitempty"`
	Outputs schema.Ref `json:"outputs,omitzero"` // stage manifest of logprobs, if the step has one
	// Buffer asks for the stage buffer. Previous is the buffer after the previous step; zero if it is empty.
	Buffer   bool       `json:"buffer,omitempty"`
	Previous schema.Ref `json:"previous,omitzero"`
	// Timeouts are time limits in seconds, by the activities of the stages, where a person set others.
	Timeouts map[string]float64 `json:"timeouts,omitempty"`
}

// Batch holds the results of the stages that BatchInput asked for.
type Batch struct {
	Committed []StageRef `json:"committed,omitempty"`
	Resampled Resampled  `json:"resampled"`
	Batch     Advantages `json:"batch"`
	Buffered  Buffered   `json:"buffered"`
	Timings   []Timing   `json:"timings,omitempty"` // of the stages that ran, in order
}

// ResampleInput asks which trajectories are kept.
type ResampleInput struct {
	Scope
	Rewards schema.Ref `json:"rewards"` // stage manifest
	// Excluded are the shards whose parts the rewards lack. Prompts, the step's prompts, tell which trajectories
	// these are. The activity reads Prompts only if Excluded is not empty.
	Excluded []ExcludedShard `json:"excluded,omitempty"`
	Prompts  schema.Ref      `json:"prompts,omitzero"`
}

// ExcludedShard is a shard of a step that failed for good and was skipped.
type ExcludedShard struct {
	Shard  int    `json:"shard"`
	Stage  string `json:"stage"`  // the stage that failed
	Reason string `json:"reason"` // the failure's text
}

// Resampled counts groups and rows.
type Resampled struct {
	Done
	Kept          int `json:"kept"` // trajectories
	Dropped       int `json:"dropped"`
	KeptGroups    int `json:"kept_groups"`
	DroppedGroups int `json:"dropped_groups"`
	// Reasons counts trajectories by reason; schema.ReasonExcluded counts the excluded ones.
	Reasons map[string]int `json:"reasons"`
	// Masked counts the kept trajectories whose tokens are masked out of the loss, by reason.
	Masked map[string]int `json:"masked,omitempty"`
}

// TokenOutputsInput asks for the token outputs of one shard's kept trajectories.
type TokenOutputsInput struct {
	Scope
	Shard int `json:"shard"`
	// Assembled is the shard's manifest of assembled trajectories, which leads to its turns.
	Assembled schema.Ref `json:"assembled,omitzero"`
	// Turns lists the shard's turns instead, if the step began before Assembled existed.
	Turns     []schema.Ref `json:"turns,omitempty"`
	Selection schema.Ref   `json:"selection"`
	// Policy is the policy that the update starts from. Its manifest also names the critic, if the run trains one.
	// The activity finds the reference policy in the record.
	Policy PolicyRef `json:"policy"`
	// Sampling is the policy that sampled the step, where that is an earlier one.
	Sampling *PolicyRef `json:"sampling,omitempty"`
}

// TokenOutputs counts the outputs.
type TokenOutputs struct {
	Done
	Rows   int   `json:"rows"`
	Tokens int64 `json:"tokens"` // tokens in the loss
}

// AdvantageInput asks for the training batch.
type AdvantageInput struct {
	Scope
	Turns     []schema.Ref `json:"turns"` // stage manifests, one for each turn
	Rewards   schema.Ref   `json:"rewards"`
	Selection schema.Ref   `json:"selection"`
	Outputs   schema.Ref   `json:"outputs,omitzero"` // stage manifest of logprobs, if the step has one
}

// Advantages counts the rows and tokens of the batch.
type Advantages struct {
	Done
	Rows   int   `json:"rows"`
	Tokens int64 `json:"tokens"` // tokens in the loss
}

// BufferInput asks for the replay buffer after a step.
type BufferInput struct {
	Scope
	Previous schema.Ref `json:"previous,omitzero"` // the buffer after the previous step; zero if it is empty
	Rewards  schema.Ref `json:"rewards"`
	Batch    schema.Ref `json:"batch"`
}

// Buffered counts the replay buffer after a step.
type Buffered struct {
	Done
	Size      int `json:"size"`   // trajectories
	Stored    int `json:"stored"` // trajectories added in this step
	Baselines int `json:"baselines"`
	// Consumed means that the buffer was full: its trajectories were evaluated again, the buffer was emptied, and
	// Imitated of the trajectories are the step's replay batch.
	Consumed     bool    `json:"consumed,omitempty"`
	Imitated     int     `json:"imitated,omitempty"`
	P50          float64 `json:"p50"`                    // median of the baselines
	Recalibrated float64 `json:"recalibrated,omitempty"` // mean Ã of the imitated trajectories
}

// UpdateInput asks for one policy update.
type UpdateInput struct {
	Scope
	Batch  schema.Ref `json:"batch"`
	Policy PolicyRef  `json:"policy"`
	Buffer schema.Ref `json:"buffer,omitzero"` // the step's replay buffer, if the recipe has one
}

// Updated reports the update: means over its optimiser steps, except those on the replay batch.
type Updated struct {
	Done
	Policy       PolicyRef `json:"policy"`
	Loss         float64   `json:"loss"`
	KL           float64   `json:"kl"`
	Entropy      *float64  `json:"entropy"` // nil if the trainer computes none
	ClipFraction float64   `json:"clip_fraction"`
	GradNorm     *float64  `json:"grad_norm"` // nil if the trainer does not tell
	Drift        float64   `json:"drift"`     // largest |log-probability now − old| before the first step
	// ReferenceKL is the estimated divergence from the reference, if the loss includes one.
	ReferenceKL *float64 `json:"reference_kl,omitempty"`
	Tokens      int64    `json:"tokens"`
	// Advantages describes the advantages that the update trained on; nil if it had nothing to train on.
	Advantages *schema.Advantages `json:"advantages,omitempty"`
	// Critic is the critic's part of the update, if the recipe has one.
	Critic *schema.CriticFigures `json:"critic,omitempty"`
	// Gamma is the weight of the imitation, if the recipe has one.
	Gamma *float64 `json:"gamma,omitempty"`
}

// PublishInput asks the rollout engine to serve a checkpoint, and asks for the step's head.
type PublishInput struct {
	Scope
	Policy PolicyRef  `json:"policy"`
	Stages []StageRef `json:"stages"` // the stages that the step's head names
	// Unloaded leaves it to the next rollout to have its engine load the checkpoint.
	Unloaded bool `json:"unloaded,omitempty"`
}

// Published is the result of a finished step.
type Published struct{ Done }

// FinishInput asks for a step's update and, after it, for its publication.
type FinishInput struct {
	UpdateInput
	Stages []StageRef `json:"stages"` // the stages before the update that the step's head names
	// Timeouts are time limits in seconds, by the activities of the stages, where a person set others.
	Timeouts map[string]float64 `json:"timeouts,omitempty"`
}

// Finished holds the results of both stages.
type Finished struct {
	Updated
	Published Published `json:"published"`
}
