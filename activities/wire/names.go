package wire

import "github.com/ropewalk/ropewalk/schema"

// Activity names, as Temporal's UI shows them.
const (
	PrepareRun           = "PrepareRun"
	AmendRecipe          = "AmendRecipe"
	WarmStart            = "WarmStart"
	SelectPrompts        = "SelectPrompts"
	GenerateRollouts     = "GenerateRollouts"
	ExecuteToolCalls     = "ExecuteToolCalls"
	AssembleTrajectories = "AssembleTrajectories"
	GradeAnswers         = "GradeAnswers"
	ScoreRewards         = "ScoreRewards"
	CommitStages         = "CommitStages"
	Resample             = "Resample"
	ComputeTokenOutputs  = "ComputeTokenOutputs"
	ComputeAdvantages    = "ComputeAdvantages"
	UpdateReplayBuffer   = "UpdateReplayBuffer"
	UpdatePolicy         = "UpdatePolicy"
	PublishPolicy        = "PublishPolicy"
	Evaluate             = "Evaluate"
	RecordTimings        = "RecordTimings"
	ImportTrajectories   = "ImportTrajectories"
	CompareCalculator    = "CompareCalculator"
	PrepareReplay        = "PrepareReplay"
	CompareReplay        = "CompareReplay"
	PrepareCheck         = "PrepareCheck"
	CheckReplay          = "CheckReplay"
	FindHome             = "FindHome"
	ServeRanks           = "ServeRanks"
)

// Stages, as manifests, search attributes and timings name them. Compare, commit and timings
// commit nothing that another stage reads.
const (
	StagePrepare   = schema.StagePrepare
	StageWarmStart = schema.StageWarmStart
	StagePrompts   = schema.StagePrompts
	StageRollout   = schema.StageRollout
	StageSandbox   = schema.StageSandbox
	StageAssemble  = schema.StageAssemble
	StageGrade     = schema.StageGrade
	StageReward    = schema.StageReward
	StageResample  = schema.StageResample
	StageForward   = schema.StageForward
	StageAdvantage = schema.StageAdvantage
	StageBuffer    = schema.StageBuffer
	StageUpdate    = schema.StageUpdate
	StagePublish   = schema.StagePublish
	StageEvaluate  = schema.StageEvaluate
	StageImport    = schema.StageImport
	StageReplay    = schema.StageReplay
	StageCompare   = "compare"
	StageCommit    = "commit"
	StageTimings   = "timings"
)

// Formats of imported files; each is also the name of its recipes' environment.
const (
	FormatGSM8K  = "gsm8k-solutions"
	FormatOpenAI = "openai"
)

// Kinds of failures: the types of application errors, and values of the FailureKind search attribute.
const (
	FailBadInput  = "bad_input"      // somebody must change what was asked for
	FailCorrupt   = "corrupt_record" // committed bytes do not match their digest
	FailRefused   = "refused"        // a stage cannot work on such input (e.g. null log-probabilities)
	FailMemory    = "out_of_memory"  // the engine's device is too small for the work
	FailNonFinite = "non_finite"     // a gradient or loss is NaN or infinite
	FailElsewhere = "elsewhere"      // a host no longer holds the run's engine and has no room for it: any other may take the work
)
