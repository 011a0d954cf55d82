// Package workflows holds the durable control flow: which activity runs after which. It sees references and
// statistics, never the rows that the activities read and write.
//
// Glossary. *TrainRun* trains one policy by one recipe. *TrainStep* is its child, one pass prompts → rollout →
// sandbox → grade → reward → resample → logprobs → advantage → buffer → update → publish (grade, logprobs and buffer
// only if the recipe needs them). An *own step* is such a pass that is short and therefore no child: TrainRun runs its
// activities itself. *RolloutShard* is the step's child and takes one shard from prompts to rewards.
// *SampleStep* is the run's child and takes one step of a pipelined run from prompts to rewards, before TrainStep goes
// on from there.
// *ReprocessRun* runs reward → resample → advantage over imported trajectories. *EvaluateRun*
// measures one policy, which any run has made, in any environment. *ReplayStage* runs these stages again
// over what a step has committed. *ServeRanks* lets other hosts run ranks of an engine whose models span several
// hosts. A run's *home* is the host whose engine holds its models. A *shard rollout* takes one shard from prompts to
// rewards.
// *ForkRun* begins a TrainRun that shares the first steps of another run.
// *HandOver* is a run between two builds of the workers. *ScheduledRun* starts the run that a schedule wants.
// *Experiment* trains the trials of an experiment, a TrainRun each.
// Workflow code reads no file, clock or environment variable.
package workflows

import (
	"fmt"
	"maps"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/schema/stages"
)

// Task queues. Workflows run on QueueCPU.
const (
	QueueCPU     = stages.CPU
	QueueRollout = stages.Rollout
	QueueSandbox = stages.Sandbox
	QueueGPU     = stages.GPU
)

// Workflow types, as Temporal's UI shows them.
const (
	TrainRunName     = "TrainRun"
	TrainStepName    = "TrainStep"
	RolloutShardName = "RolloutShard"
	ReprocessRunName = "ReprocessRun"
	EvaluateRunName  = "EvaluateRun"
	ReplayStageName  = "ReplayStage"
	ServeRanksName   = "ServeRanks"
	SampleStepName   = "SampleStep"
	ForkRunName      = "ForkRun"
	HandOverName     = "HandOver"
	ScheduledRunName = "ScheduledRun"
	ExperimentName   = "Experiment"
)

// definitions holds the workflows by type.
var definitions = map[string]any{
	TrainRunName: TrainRun, TrainStepName: TrainStep, RolloutShardName: RolloutShard, ReprocessRunName: ReprocessRun,
	EvaluateRunName: EvaluateRun, ReplayStageName: ReplayStage, ServeRanksName: ServeRanks, SampleStepName: SampleStep,
	ForkRunName: ForkRun, HandOverName: HandOver, ScheduledRunName: ScheduledRun, ExperimentName: Experiment,
}

// Registry is what takes workflows: a worker, a replayer or a test's environment.
type Registry interface {
	// RegisterWorkflowWithOptions registers a workflow.
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
}

// Register registers all workflows. Workers of a deployment keep every workflow on the build that it began with, except
// for HandOver, through which a run changes builds, and ScheduledRun, which only waits. Other workers ignore this.
func Register(r Registry) {
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		behaviour := workflow.VersioningBehaviorPinned
		if name == HandOverName || name == ScheduledRunName {
			behaviour = workflow.VersioningBehaviorAutoUpgrade
		}
		r.RegisterWorkflowWithOptions(definitions[name],
			workflow.RegisterOptions{Name: name, VersioningBehavior: behaviour})
	}
}

// QueryProgress is the query that returns the state of TrainRun, ReprocessRun and EvaluateRun.
const QueryProgress = "progress"

// QueryTrials is the query that returns the trials of an Experiment and their states.
const QueryTrials = "trials"

// QueryUnrecorded is the query for the measured times that a TrainRun has not recorded, also if it was ended.
const QueryUnrecorded = "unrecorded"

// Search attributes, declared in temporal.yaml.
var (
	attrRunID       = temporal.NewSearchAttributeKeyKeyword("RunID")
	attrStep        = temporal.NewSearchAttributeKeyInt64("Step")
	attrStage       = temporal.NewSearchAttributeKeyKeyword("Stage")
	attrFailureKind = temporal.NewSearchAttributeKeyKeyword("FailureKind")
	attrRunState    = temporal.NewSearchAttributeKeyKeyword("RunState")
	attrSuccess     = temporal.NewSearchAttributeKeyFloat64("Success")
	attrRunStarted  = temporal.NewSearchAttributeKeyTime("RunStarted")
)

// StagePaused is the stage of a run that waits between two steps.
const StagePaused = "paused"

// RunsQuery finds the latest workflow of each run: those of steps, shards, replays and ranks are left out, and so are
// the parts of a run that continued as new. Temporal's UI takes it as the filter of a view.
const RunsQuery = `WorkflowType IN ("TrainRun", "ReprocessRun", "EvaluateRun") AND ExecutionStatus != "ContinuedAsNew"`

// StepWorkflowID is the deterministic id of a step's child workflow.
func StepWorkflowID(run string, step int) string { return fmt.Sprintf("%s/step=%d", run, step) }

// SampleWorkflowID is the deterministic id of the child workflow that samples a step of a pipelined run.
func SampleWorkflowID(run string, step int) string { return StepWorkflowID(run, step) + "/sample" }

// ShardWorkflowID is the deterministic id of the child workflow of one shard of a step.
func ShardWorkflowID(run string, step, shard int) string {
	return fmt.Sprintf("%s/shard=%d", StepWorkflowID(run, step), shard)
}
