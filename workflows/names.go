// Package workflows holds the durable control flow: which activity runs after which, and
// nothing of the data that they pass.
//
// Glossary. *TrainRun* is one training of one policy by one recipe; *TrainStep* is its child,
// one pass prompts → rollout → sandbox → grade → reward → resample → forward → advantage → buffer →
// update → publish (grade, forward and buffer where the recipe needs them);
// *ReprocessRun* runs reward → resample → advantage over imported trajectories; *ReplayStage* runs
// them again over what a step has committed; *ServeRanks* has other hosts run ranks of an engine whose models lie on
// several. A run's *home* is the host whose engine holds its models. A *lane* is one shard's way through a rollout.
// Workflow code reads no file, clock or environment.
package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
)

// Task queues. Workflows run on QueueCPU.
const (
	QueueCPU     = "cpu"
	QueueRollout = "rollout"
	QueueSandbox = "sandbox"
	QueueGPU     = "gpu"
)

// Workflow types, as Temporal's UI shows them.
const (
	TrainRunName     = "TrainRun"
	TrainStepName    = "TrainStep"
	ReprocessRunName = "ReprocessRun"
	ReplayStageName  = "ReplayStage"
	ServeRanksName   = "ServeRanks"
)

// QueryProgress is TrainRun's and ReprocessRun's query for their state.
const QueryProgress = "progress"

// Search attributes that temporal.yaml declares.
var (
	attrRunID       = temporal.NewSearchAttributeKeyKeyword("RunID")
	attrStep        = temporal.NewSearchAttributeKeyInt64("Step")
	attrStage       = temporal.NewSearchAttributeKeyKeyword("Stage")
	attrFailureKind = temporal.NewSearchAttributeKeyKeyword("FailureKind")
)

// StagePaused is the stage of a run that waits between two steps.
const StagePaused = "paused"

// StepWorkflowID is the deterministic id of a step's child workflow.
func StepWorkflowID(run string, step int) string { return fmt.Sprintf("%s/step=%d", run, step) }
