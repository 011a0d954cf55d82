// Package api holds the parameters and results of every activity: references and small statistics, never rows.
// Workflows and activities share these types.
//
// Glossary. A *scope* says which stage of which step of which run an activity works for. A *ref* names a committed
// manifest by key and digest. A *policy ref* names the manifest that committed a checkpoint. A *timing* is one
// activity's measured interval, for the timings table.
package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// Activity names, as schema/stages declares them and Temporal's UI shows them.
const (
	PrepareRun           = "PrepareRun"
	AmendRecipe          = "AmendRecipe"
	WarmStart            = "WarmStart"
	PrepareData          = "PrepareData"
	SelectCandidates     = "SelectCandidates"
	AnswerTasks          = "AnswerTasks"
	SelectPrompts        = "SelectPrompts"
	GenerateRollouts     = "GenerateRollouts"
	ExecuteToolCalls     = "ExecuteToolCalls"
	RunEpisodes          = "RunEpisodes"
	MakeBatch            = "MakeBatch"
	AssembleTrajectories = "AssembleTrajectories"
	GradeAnswers         = "GradeAnswers"
	JudgeAnswers         = "JudgeAnswers"
	CallFunction         = "CallFunction"
	ScoreRewards         = "ScoreRewards"
	CommitStages         = "CommitStages"
	Resample             = "Resample"
	ComputeTokenOutputs  = "ComputeTokenOutputs"
	ComputeAdvantages    = "ComputeAdvantages"
	UpdateReplayBuffer   = "UpdateReplayBuffer"
	UpdatePolicy         = "UpdatePolicy"
	PublishPolicy        = "PublishPolicy"
	UpdateAndPublish     = "UpdateAndPublish"
	PruneCheckpoints     = "PruneCheckpoints"
	CompactStep          = "CompactStep"
	Evaluate             = "Evaluate"
	EvaluateInitial      = "EvaluateInitial"
	EvaluateShard        = "EvaluateShard"
	EvaluateFactual      = "EvaluateFactual"
	ContrastPolicies     = "ContrastPolicies"
	RecordTimings        = "RecordTimings"
	ImportTrajectories   = "ImportTrajectories"
	PrepareReplay        = "PrepareReplay"
	CompareReplay        = "CompareReplay"
	PrepareCheck         = "PrepareCheck"
	CheckReplay          = "CheckReplay"
	NoteState            = "NoteState"
	NoteDeed             = "NoteDeed"
	PlanExperiment       = "PlanExperiment"
	JudgeTrials          = "JudgeTrials"
	FindHome             = "FindHome"
	ServeRanks           = "ServeRanks"
)

// InitStep is the step number of run-level stages (prepare, warm start, import).
const InitStep = -1

// Scope says where an activity's output belongs.
type Scope struct {
	Run    string     `json:"run"`
	Step   int        `json:"step"` // InitStep for run-level stages
	Gen    int        `json:"gen"`
	Config schema.Ref `json:"config"` // the manifest of PrepareRun: resolved recipe and code digest
}

// PolicyRef names a committed checkpoint.
type PolicyRef struct {
	Manifest schema.Ref `json:"manifest"` // the manifest that holds the checkpoint's file list
	Digest   string     `json:"digest"`   // checkpoint digest
	Step     int        `json:"step"`     // the step whose update made it; 0 for the warm start
}

// Timing is the measurement of one activity execution. Times are Unix microseconds.
type Timing struct {
	Stage   string  `json:"stage"`
	Shard   int     `json:"shard"`
	Turn    int     `json:"turn"`
	Start   int64   `json:"start"`
	End     int64   `json:"end"`
	Queue   float64 `json:"queue"` // seconds between scheduling and start
	CPU     float64 `json:"cpu"`   // seconds, if the stage measures it
	Attempt int     `json:"attempt"`
	Host    string  `json:"host"`
	Rows    int64   `json:"rows"`
	Tokens  int64   `json:"tokens"`
	// Adopted means that this execution found the stage committed. The times are those of this execution. The times
	// of the execution that did the work are lost, because its worker ended before it could record them.
	Adopted bool `json:"adopted,omitempty"`
	// Device is how the stage used devices; nil if its engine measures nothing.
	Device *DeviceUse `json:"device,omitempty"`
	// TraceID and SpanID are the trace of the step and the execution's span in it, in hexadecimal; "" if the execution
	// was not traced.
	TraceID string `json:"trace_id,omitempty"`
	SpanID  string `json:"span_id,omitempty"`
}

// Capacity is what generates for a rollout, and what it has room for at once.
type Capacity struct {
	Engine string `json:"engine"`           // as the engine describes its device
	Rows   int    `json:"rows,omitempty"`   // responses; 0 = no limit is known
	Tokens int    `json:"tokens,omitempty"` // of the KV cache; 0 = no limit is known
}

// ShardState is how far the episodes of an interleaved shard are.
type ShardState struct {
	Episodes     int     `json:"episodes"`       // all of them
	Finished     int     `json:"finished"`       // episodes that have ended
	Turns        int64   `json:"turns"`          // responses of this attempt
	Calls        int64   `json:"calls"`          // episodes whose calls are in flight
	TokensPerSec float64 `json:"tokens_per_sec"` // sampled by this attempt
}

// DeviceUse is how a stage used its engine's devices.
type DeviceUse struct {
	// PeakBytes is the most memory held on one device; 0 if the device has no memory of its own.
	PeakBytes    int64    `json:"peak_bytes,omitempty"`
	Utilisation  *float64 `json:"utilisation,omitempty"`
	MFU          *float64 `json:"mfu,omitempty"` // model flops divided by the devices' peak
	TokensPerSec *float64 `json:"tokens_per_s,omitempty"`
}

// String describes the use for people, as far as it is known.
func (d *DeviceUse) String() string {
	var parts []string
	add := func(format string, x float64) { parts = append(parts, fmt.Sprintf(format, x)) }
	if d.TokensPerSec != nil {
		add("%.0f tokens/s", *d.TokensPerSec)
	}
	if d.MFU != nil {
		add("MFU %.1f%%", 100**d.MFU)
	}
	if d.Utilisation != nil {
		add("busy %.0f%%", 100**d.Utilisation)
	}
	if d.PeakBytes > 0 {
		add("%.1f GiB at most", float64(d.PeakBytes)/(1<<30))
	}
	return strings.Join(parts, ", ")
}

// Done is the part of a stage activity's result that belongs to the attempt. The rest of the result is committed in the
// manifest's note, with Done zero; so JSON leaves out every field of Done that is zero.
type Done struct {
	Manifest schema.Ref `json:"manifest,omitzero"`
	Adopted  bool       `json:"adopted,omitzero"` // an earlier attempt had already committed
	// Home is the host whose engine did the work and still holds its state; "" if no such host is known.
	Home   string `json:"home,omitzero"`
	Timing Timing `json:"timing,omitzero"`
}

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

// Committed returns the stage manifests with their stages, in the requested order. Those of Rewards follow in the order
// of the stages, turn by turn.
type Committed struct {
	Done
	Stages Made `json:"stages,omitempty"`
}

// BatchInput asks for stages between a step's rollout and its update that are one piece each.
type BatchInput struct {
	Scope
	Sent
	Stages []string `json:"stages"` // in their order
	// Commit asks for the stage manifests of the sharded stages, if the stage commit is one of Stages.
	Commit *CommitInput `json:"commit,omitempty"`
	// Made is what the step has committed before.
	Made Made `json:"made,omitempty"`
	// Excluded are the shards whose parts the rewards lack.
	Excluded []ExcludedShard `json:"excluded,omitempty"`
	// Before is the replay buffer after the previous step; zero if it is empty.
	Before schema.Ref `json:"before,omitzero"`
	// Chain describes for people what the stage resample runs.
	Chain string `json:"chain,omitempty"`
}

// Of returns the input of one of the stages, after those in made.
func (in *BatchInput) Of(stage string, made Made) any {
	if stage == stages.Commit {
		return *in.Commit
	}
	out := StageInput{Scope: in.Scope}
	declared, _ := stages.Of(stage)
	if declared.Continues != "" {
		out.Before = in.Before
	}
	if slices.Contains(declared.Writes, schema.Selection) {
		out.Excluded = in.Excluded
	}
	for _, m := range made {
		if declared.ReadsOf(m.Stage) || len(out.Excluded) > 0 && m.Stage == schema.StagePrompts {
			out.Made = append(out.Made, m)
		}
	}
	return out
}

// Batch holds the results of the stages that BatchInput asked for.
type Batch struct {
	Spent
	Made      Made       `json:"made,omitempty"` // what the stages have committed, in their order
	Committed Committed  `json:"committed"`
	Resampled Resampled  `json:"resampled"`
	Batch     Advantages `json:"batch"`
	Buffered  Buffered   `json:"buffered"`
}

// Of returns the result of one of the stages. That of a stage without figures is not kept.
func (b *Batch) Of(stage string) Result {
	switch stage {
	case stages.Commit:
		return &b.Committed
	case schema.StageResample:
		return &b.Resampled
	case schema.StageAdvantage:
		return &b.Batch
	case schema.StageBuffer:
		return &b.Buffered
	}
	return &Done{}
}

// Merge takes the results of the stages that another batch has made.
func (b *Batch) Merge(other Batch) {
	for _, m := range other.Made {
		switch m.Stage {
		case schema.StageResample:
			b.Resampled = other.Resampled
		case schema.StageAdvantage:
			b.Batch = other.Batch
		case schema.StageBuffer:
			b.Buffered = other.Buffered
		}
	}
}

// StageInput asks for a stage that is one piece and is made from what the step has committed.
type StageInput struct {
	Scope
	Made Made `json:"made,omitempty"` // what the stage reads, as it declares
	// Before is the state that the stage continues, as of the previous step; zero if it is empty.
	Before schema.Ref `json:"before,omitzero"`
	// Excluded are the shards whose parts the rewards lack, for the stage that lists their trajectories. The step's
	// prompts, which tell what these are, are in Made then.
	Excluded []ExcludedShard `json:"excluded,omitempty"`
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
	Assembled schema.Ref `json:"assembled"`
	Selection schema.Ref `json:"selection"`
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

// Advantages counts the rows and tokens of the batch.
type Advantages struct {
	Done
	Rows   int   `json:"rows"`
	Tokens int64 `json:"tokens"` // tokens in the loss
}

// Buffered counts the replay buffer after a step.
type Buffered struct {
	Done
	Size      int `json:"size"`   // rows
	Stored    int `json:"stored"` // rows added in this step
	Baselines int `json:"baselines"`
	// Consumed means that the buffer was full: its rows were evaluated again, the buffer was emptied, and
	// Imitated of the rows are the step's replay batch.
	Consumed     bool    `json:"consumed,omitempty"`
	Imitated     int     `json:"imitated,omitempty"`
	P50          float64 `json:"p50"`                    // median of the baselines
	Recalibrated float64 `json:"recalibrated,omitempty"` // mean Ã of the imitated rows
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
	Sent
	Stages []StageRef `json:"stages"` // the stages before the update that the step's head names
	// Unloaded leaves it to the next rollout to have its engine load the checkpoint.
	Unloaded bool   `json:"unloaded,omitempty"`
	Note     string `json:"-"` // for people, of the update
}

// Finished holds the results of both stages.
type Finished struct {
	Updated
	Spent
	Published Published `json:"published"`
}
