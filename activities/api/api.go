// Package api holds the parameters and results of every activity: references and small statistics, never rows.
// Workflows and activities share these types.
//
// Glossary. A *scope* says which stage of which step of which run an activity works for. A *ref* names a committed
// manifest by key and digest. A *policy ref* names the manifest that committed a checkpoint. A *timing* is one
// activity's measured interval, for the timings table.
package api

import (
	"fmt"
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
	EvaluateUntaught     = "EvaluateUntaught"
	EvaluateShard        = "EvaluateShard"
	RecordTimings        = "RecordTimings"
	ImportTrajectories   = "ImportTrajectories"
	CompareCalculator    = "CompareCalculator"
	PrepareReplay        = "PrepareReplay"
	CompareReplay        = "CompareReplay"
	PrepareCheck         = "PrepareCheck"
	CheckReplay          = "CheckReplay"
	NoteState            = "NoteState"
	NoteDeed             = "NoteDeed"
	FindHome             = "FindHome"
	ReportRoom           = "ReportRoom"
	ObserveShards        = "ObserveShards"
	ServeRanks           = "ServeRanks"
)

// Stages, as manifests, search attributes and timings name them. No other stage reads what compare, commit, timings
// and prune commit.
const (
	StagePrepare    = schema.StagePrepare
	StageWarmStart  = schema.StageWarmStart
	StageData       = schema.StageData
	StageCandidates = schema.StageCandidates
	StageAnswers    = schema.StageAnswers
	StagePrompts    = schema.StagePrompts
	StageRollout    = schema.StageRollout
	StageSandbox    = schema.StageSandbox
	StageAssemble   = schema.StageAssemble
	StageGrade      = schema.StageGrade
	StageJudge      = schema.StageJudge
	StageFunction   = schema.StageFunction
	StageReward     = schema.StageReward
	StageResample   = schema.StageResample
	StageLogprobs   = schema.StageLogprobs
	StageAdvantage  = schema.StageAdvantage
	StageBuffer     = schema.StageBuffer
	StageUpdate     = schema.StageUpdate
	StagePublish    = schema.StagePublish
	StageEvaluate   = schema.StageEvaluate
	StageUntaught   = schema.StageUntaught
	StageImport     = schema.StageImport
	StageReplay     = schema.StageReplay
	StageCompare    = stages.Compare
	StageCommit     = stages.Commit
	StageTimings    = stages.Timings
	StagePrune      = stages.Prune
	StageCompact    = schema.StageCompact
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
	Episodes     int     `json:"episodes"`        // all of them
	Finished     int     `json:"finished"`        // episodes that have ended
	Turns        int64   `json:"turns"`           // responses of this attempt
	Calls        int64   `json:"calls"`           // episodes whose calls are in flight
	TokensPerSec float64 `json:"tokens_per_sec"`  // sampled by this attempt
	Queue        string  `json:"queue,omitempty"` // task queue of the activity
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
